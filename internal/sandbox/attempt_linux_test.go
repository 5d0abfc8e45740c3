package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attemptEnv makes the test binary try to do one thing: "name argument".
const attemptEnv = "YAYA_TEST_ATTEMPT"

// Exit codes of an attempt.
const (
	didIt     = 0
	prevented = 41
)

var errNotDone = errors.New("it had no effect")

func attemptMain(attempt string) int {
	name, arg, _ := strings.Cut(attempt, " ")
	if err := attempts[name](arg); err != nil {
		fmt.Println(err)
		return prevented
	}
	return didIt
}

func socket(domain, kind, proto int) error {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// withPair gives one of two sockets for datagrams.
func withPair(do func(fd int) error) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
	return do(pair[0])
}

func readAll(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && len(data) == 0 {
		return errNotDone
	}
	return err
}

func dial(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 5*time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err
}

// again runs this program with another attempt.
func again(attempt string, change func(*exec.Cmd)) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), attemptEnv+"="+attempt)
	change(cmd)
	return cmd.Run()
}

func sys(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// attempts are actions that a program in a sandbox must not be able to do.
var attempts = map[string]func(arg string) error{
	"nothing": func(string) error { return nil },
	"read":    readAll,
	"list": func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err == nil && len(entries) == 0 {
			return errNotDone
		}
		return err
	},
	"symlink": func(path string) error {
		return errors.Join(os.Symlink(path, "link"), readAll("link"))
	},
	"hardlink": func(path string) error {
		if err := os.Link(path, "hard"); err != nil {
			return err
		}
		return readAll("hard")
	},
	"write": func(path string) error { return os.WriteFile(path, []byte("changed"), 0o600) },
	"openw": func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_ = f.Close()
		}
		return err
	},
	"openr": func(path string) error {
		f, err := os.Open(path)
		if err == nil {
			_ = f.Close()
		}
		return err
	},
	"rename": func(path string) error { return os.Rename(path, path+".moved") },
	"remove": os.Remove,
	"mvgit": func(string) error {
		return errors.Join(os.Rename(".git", ".g2"), os.Mkdir(".git", 0o700), os.WriteFile(".git/config", []byte("[core]"), 0o600))
	},
	"mknod": func(string) error {
		if err := unix.Mknod("device", unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
			return err
		}
		f, err := os.Open("device")
		if err == nil {
			_ = f.Close()
		}
		if errors.Is(err, unix.ENXIO) { // opened as a device
			return nil
		}
		return err
	},
	"ptrace": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		return sys(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(n))
	},
	"vmread": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		err := sys(unix.SYS_PROCESS_VM_READV, uintptr(n))
		if err == unix.EINVAL { //nolint:errorlint // an errno
			return nil
		}
		return err
	},
	"signal": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		return unix.Kill(n, unix.SIGCONT)
	},
	"killkeeper": func(string) error {
		parent := os.Getppid()
		if err := unix.Kill(parent, unix.SIGKILL); err != nil {
			return err
		}
		for range 200 { // the kernel ignores it for the first process of a namespace
			if os.Getppid() != parent {
				return nil
			}
			time.Sleep(5 * time.Millisecond)
		}
		return errNotDone
	},
	"abstract": func(name string) error { return dial("unix", "@"+name) },
	"connect":  func(path string) error { return dial("unix", path) },
	"tcp":      func(addr string) error { return dial("tcp", addr) },
	"connectpair": func(path string) error {
		return withPair(func(fd int) error {
			if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
				return err
			}
			_, err := unix.Write(fd, []byte("x"))
			return err
		})
	},
	"sendpair": func(path string) error {
		return withPair(func(fd int) error { return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: path}) })
	},
	"vsockpair": func(string) error { // none are made of this family, but the kernel tries
		if _, err := unix.Socketpair(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != unix.EOPNOTSUPP { //nolint:errorlint // an errno
			return err
		}
		return nil
	},
	"vsock":    func(string) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"sockdiag": func(string) error { return socket(unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_SOCK_DIAG) },
	"packet":   func(string) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"alg":      func(string) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"mptcp":    func(string) error { return socket(unix.AF_INET, unix.SOCK_STREAM, 262) },
	"fastopen": func(addr string) error {
		at, err := net.ResolveTCPAddr("tcp4", addr)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())})
	},
	"iouring": func(string) error {
		var params [120]byte
		return sys(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
	},
	"keyring": func(string) error {
		_, err := unix.AddKey("user", "yaya-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	},
	"userfaultfd": func(string) error { return sys(unix.SYS_USERFAULTFD, 1) }, // UFFD_USER_MODE_ONLY
	"clone3": func(string) error {
		err := sys(unix.SYS_CLONE3, 0, 0)
		if err == unix.EINVAL { //nolint:errorlint // an errno
			return nil
		}
		return err
	},
	"tiocsti": func(string) error {
		master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
		if err != nil {
			return err
		}
		slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		return again("push", func(c *exec.Cmd) {
			c.Stdin, c.SysProcAttr = slave, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		})
	},
	"push": func(string) error {
		b := byte('x')
		return sys(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
	},
	"userns": func(string) error {
		return again("nothing", func(c *exec.Cmd) {
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}}
		})
	},
	"remount": func(path string) error { return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"umount":  func(path string) error { return unix.Unmount(path, unix.MNT_DETACH) },
	"setns": func(pid string) error {
		f, err := os.Open("/proc/" + pid + "/ns/uts")
		if err != nil {
			return err
		}
		return unix.Setns(int(f.Fd()), unix.CLONE_NEWUTS)
	},
	"descriptor": func(string) error {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		for _, fd := range fds {
			to, _ := os.Readlink("/proc/self/fd/" + fd.Name())
			if n, _ := strconv.Atoi(fd.Name()); n > 2 && to != "" && !strings.HasPrefix(to, "anon_inode:") && !strings.Contains(to, "/fd") && !strings.HasPrefix(to, "pipe:") && !strings.HasPrefix(to, "/sys/fs/cgroup/") { // Go's own
				fmt.Println(fd.Name(), to)
				return nil
			}
		}
		return errNotDone
	},
	// outlive leaves a process in a session of its own that holds a pipe open.
	"outlive": func(fifo string) error {
		return again("daemon "+fifo, func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} })
	},
	"daemon": func(fifo string) error {
		cmd := exec.Command("sh", "-c", `exec 3>"$1"; echo up >&3; sleep 300`, "sh", fifo)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		return waitFor(filepath.Join(filepath.Dir(fifo), "up"))
	},
	"stay": func(fifo string) error {
		cmd := exec.Command("sh", "-c", `trap "" TERM HUP INT; exec 3>"$1"; echo up >&3; sleep 300`, "sh", fifo)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		return cmd.Wait()
	},
}

// waitFor waits until a file exists, which says that the other side is ready.
func waitFor(path string) error {
	for range 2000 {
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("%s did not come", path)
}
