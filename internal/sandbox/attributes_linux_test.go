package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// escapesByAttributes are escapes that change the mode, the owner, the times and the
// attributes of files, for which Landlock has no right, and what of other programs the
// kernel shares beside files.
var escapesByAttributes = []escape{
	{"mode of a file outside", "check", func(p *place) string { return "chmod " + p.outside + "/file" }, NeedWrites},
	{"mode of a folder outside", "command", func(p *place) string { return "chmod " + p.outside }, NeedWrites},
	{"mode of a file outside", "server", func(p *place) string { return "chmod " + p.outside + "/file" }, NeedWrites},
	{"mode of a file outside", "plugin", func(p *place) string { return "chmod " + p.outside + "/file" }, NeedWrites},
	{"mode of credentials", "check", func(p *place) string { return "chmod " + p.secret }, NeedHidden},
	{"mode of credentials by fchmodat2", "check", func(p *place) string { return "fchmodat2 " + p.secret }, NeedHidden},
	{"mode of credentials by a descriptor", "check", func(p *place) string { return "chmodfd " + p.secret }, NeedHidden},
	{"mode of credentials by a symbolic link", "check", func(p *place) string { return "chmodlink " + p.secret }, NeedHidden},
	{"mode of credentials by a hard link", "check", func(p *place) string { return "chmodhard " + p.secret }, NeedHidden},
	{"mode of credentials from the folder above", "check", func(p *place) string { return "chmodat " + p.secret }, NeedHidden},
	{"mode of credentials by a folder that changes", "check", func(p *place) string { return "chmodrace " + p.secret }, NeedHidden},
	{"mode of yaya's key", "check", func(p *place) string { return "chmod " + p.key }, NeedHidden},
	{"mode of yaya's key, guarded", "guarded", func(p *place) string { return "chmod " + p.key }, NeedHidden},
	{"mode of yaya's folder, guarded", "guarded", func(p *place) string { return "chmod " + p.own }, NeedHidden},
	{"mode of yaya's key by fchmodat2, guarded", "guarded", func(p *place) string { return "fchmodat2 " + p.key }, NeedHidden},
	{"mode of yaya's key by a descriptor, guarded", "guarded", func(p *place) string { return "chmodfd " + p.key }, NeedHidden},
	{"mode of yaya's folder by a descriptor, guarded", "guarded", func(p *place) string { return "fchmod " + p.own }, NeedHidden},
	{"mode of yaya's key by a symbolic link, guarded", "guarded", func(p *place) string { return "chmodlink " + p.key }, NeedHidden},
	{"mode of yaya's key by a path that changes, guarded", "guarded", func(p *place) string { return "chmodrace " + p.key }, NeedHidden},
	{"owner of a file outside", "check", func(p *place) string { return "chown " + p.outside + "/file" }, NeedWrites},
	{"owner of yaya's key, guarded", "guarded", func(p *place) string { return "chown " + p.key }, NeedHidden},
	{"owner of a link outside", "check", func(p *place) string { return "lchown " + p.outside + "/link" }, NeedWrites},
	{"times of a file outside", "check", func(p *place) string { return "utimes " + p.outside + "/file" }, NeedWrites},
	{"times of a file outside by a descriptor", "check", func(p *place) string { return "futimens " + p.outside + "/file" }, NeedWrites},
	{"times of yaya's key, guarded", "guarded", func(p *place) string { return "utimes " + p.key }, NeedHidden},
	{"attribute of a file outside", "check", func(p *place) string { return "setxattr " + p.outside + "/file" }, NeedWrites},
	{"attribute of yaya's key, guarded", "guarded", func(p *place) string { return "setxattr " + p.key }, NeedHidden},
	{"list of access of yaya's key, guarded", "guarded", func(p *place) string { return "setacl " + p.key }, NeedHidden},
	{"attribute of yaya's key by its newer name, guarded", "guarded", func(p *place) string { return "setxattrat " + p.key }, NeedHidden},
	{"remove an attribute outside", "check", func(p *place) string { return "removexattr " + p.outside + "/tagged" }, NeedWrites},
	{"flags of a file outside", "check", func(p *place) string { return "setflags " + p.outside + "/file" }, NeedWrites},
	{"flags of a file outside by their newer name", "check", func(p *place) string { return "filesetattr " + p.outside + "/file" }, NeedWrites},
	{"flags of yaya's folder, guarded", "guarded", func(p *place) string { return "setflags " + p.own }, NeedHidden},
	{"read credentials by a snapshot", "check", func(p *place) string { return "snapshot " + p.dir + " home/.ssh/id" }, NeedHidden}, // of Btrfs
	{"read yaya's key by a snapshot, guarded", "guarded", func(p *place) string { return "snapshot " + p.dir + " own/key" }, NeedHidden},
	{"times of a device", "check", func(*place) string { return "utimes /dev/null" }, NeedWrites},
	{"mode of a device", "check", func(*place) string { return "chmoddevice" }, NeedWrites},
	{"a set-user-ID program for everybody", "check", func(p *place) string { return "setuid " + p.ws + "/s-program" }, NeedWrites},
	{"a set-user-ID program for everybody", "command", func(p *place) string { return "setuid " + p.ws + "/s-program" }, NeedWrites},
	{"make a set-user-ID file", "check", func(p *place) string { return "makesetuid " + p.ws + "/new" }, NeedWrites},
	{"make a set-user-ID file by openat2", "check", func(p *place) string { return "makesetuid2 " + p.ws + "/new" }, NeedWrites},
	{"make a set-user-ID file by mknod", "check", func(p *place) string { return "mknodsetuid " + p.ws + "/new" }, NeedWrites},
	{"shared memory of another program", "check", func(p *place) string { return fmt.Sprintf("shm %d", p.ipc("shm")) }, NeedKernel},
	{"semaphores of another program", "check", func(p *place) string { return fmt.Sprintf("sem %d", p.ipc("sem")) }, NeedKernel},
	{"messages of another program", "check", func(p *place) string { return fmt.Sprintf("msg %d", p.ipc("msg")) }, NeedKernel},
	{"a queue of another program", "check", func(p *place) string { return "mqueue " + p.mqueue() }, NeedKernel},
}

// ipc makes shared memory, semaphores or a queue of messages for the user alone.
func (p *place) ipc(kind string) int {
	nr, remove, args := map[string]uintptr{"shm": unix.SYS_SHMGET, "sem": unix.SYS_SEMGET, "msg": unix.SYS_MSGGET}[kind],
		map[string]uintptr{"shm": unix.SYS_SHMCTL, "sem": unix.SYS_SEMCTL, "msg": unix.SYS_MSGCTL}[kind],
		map[string][3]uintptr{"shm": {0, 4096, unix.IPC_CREAT | 0o600}, "sem": {0, 1, unix.IPC_CREAT | 0o600}, "msg": {0, unix.IPC_CREAT | 0o600}}[kind]
	id, _, errno := unix.Syscall(nr, args[0], args[1], args[2])
	if errno != 0 {
		p.t.Fatalf("%sget = %v, want no error", kind, errno)
	}
	p.t.Cleanup(func() {
		if kind == "sem" {
			_ = sys(remove, id, 0, unix.IPC_RMID)
		} else {
			_ = sys(remove, id, unix.IPC_RMID)
		}
	})
	return int(id)
}

// mqueue makes a queue of POSIX for the user alone.
func (p *place) mqueue() string {
	name := "yaya-test-" + filepath.Base(filepath.Dir(p.dir))
	at := append([]byte(name), 0)
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&at[0])), unix.O_RDWR|unix.O_CREAT, 0o600, 0, 0, 0)
	if errno != 0 {
		p.t.Logf("no queue: %v", errno)
		return name
	}
	_ = unix.Close(int(fd))
	p.t.Cleanup(func() { _ = sys(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&at[0]))) })
	return name
}

// volume is the kernel's struct btrfs_ioctl_vol_args.
type volume struct {
	fd   int64
	name [4088]byte
}

func (v *volume) ask(request uintptr, dir, name string) error {
	copy(v.name[:], name)
	return opened(dir, unix.O_RDONLY, func(fd int) error {
		return sys(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(v)))
	})
}

// subvolume makes a folder that Btrfs makes snapshots of.
func subvolume(dir, name string) error { return new(volume).ask(0x5000940e, dir, name) }

func init() { maps.Copy(attempts, attemptsByAttributes) }

// otherMode is the mode of a file with one bit changed, so that a change can be seen.
func otherMode(path string) (uint32, func() error, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, nil, err
	}
	want := st.Mode&0o7777 ^ 0o004
	return want, func() error {
		if err := unix.Stat(path, &st); err != nil {
			return err
		}
		if st.Mode&0o7777 != want {
			return errNotDone
		}
		return nil
	}, nil
}

func opened(path string, flags int, do func(fd int) error) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return do(fd)
}

// changesMode has a mode changed and looks whether it was.
func changesMode(do func(path string, mode uint32) error) func(path string) error {
	return func(path string) error {
		mode, changed, err := otherMode(path)
		if err == nil {
			err = do(path, mode)
		}
		if err != nil {
			return err
		}
		return changed()
	}
}

const attributeName = "user.yaya"

var attemptsByAttributes = map[string]func(path string) error{
	"chmod": changesMode(unix.Chmod),
	"fchmodat2": changesMode(func(path string, mode uint32) error {
		return unix.Fchmodat(unix.AT_FDCWD, path, mode, unix.AT_SYMLINK_NOFOLLOW)
	}),
	"chmodfd": changesMode(func(path string, mode uint32) error { // a descriptor needs no right
		return opened(path, unix.O_PATH, func(fd int) error { return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode) })
	}),
	"fchmod": changesMode(func(path string, mode uint32) error {
		return opened(path, unix.O_RDONLY, func(fd int) error { return unix.Fchmod(fd, mode) })
	}),
	"chmodlink": changesMode(func(path string, mode uint32) error {
		return errors.Join(os.Symlink(path, "link"), unix.Chmod("link", mode))
	}),
	"chmodhard": changesMode(func(path string, mode uint32) error {
		if err := os.Link(path, "hard"); err != nil {
			return err
		}
		return unix.Chmod("hard", mode)
	}),
	"chmodat": changesMode(func(path string, mode uint32) error {
		return opened(filepath.Dir(path), unix.O_PATH, func(fd int) error {
			return unix.Fchmodat(fd, "../"+filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), mode, 0)
		})
	}),
	// chmodrace changes the path in memory, and where a link leads, while a call is
	// answered.
	"chmodrace": func(path string) error {
		mode, changed, err := otherMode(path)
		if err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile("good", nil, 0o600), os.Symlink("good", "way"), os.Symlink(path, "other")); err != nil {
			return err
		}
		buf := append([]byte("way"), make([]byte, len(path))...)
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, "way", unix.AT_FDCWD, "other", unix.RENAME_EXCHANGE)
					if buf[0] == 'w' {
						copy(buf, path)
					} else {
						copy(buf, "way\x00")
					}
				}
			}
		}()
		err = errNotDone
		for range 2000 {
			_, _, _ = unix.Syscall6(unix.SYS_FCHMODAT, uintptr(^uint(99)), uintptr(unsafe.Pointer(&buf[0])), uintptr(mode), 0, 0, 0)
			if err = changed(); err == nil {
				break
			}
		}
		close(stop)
		<-ended
		return err
	},
	"chown":  func(path string) error { return unix.Chown(path, os.Getuid(), os.Getgid()) },
	"lchown": func(path string) error { return unix.Lchown(path, os.Getuid(), -1) },
	"utimes": func(path string) error { return unix.Utimes(path, []unix.Timeval{{Sec: 1}, {Sec: 1}}) },
	"futimens": func(path string) error {
		return opened(path, unix.O_RDONLY, func(fd int) error {
			return sys(unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0)
		})
	},
	"setxattr":    func(path string) error { return unix.Setxattr(path, attributeName, []byte("x"), 0) },
	"removexattr": func(path string) error { return unix.Removexattr(path, attributeName) },
	"setacl": func(path string) error { // everybody may read it
		return unix.Setxattr(path, "system.posix_acl_access", []byte("\x02\x00\x00\x00"+"\x01\x00\x06\x00\xff\xff\xff\xff"+"\x04\x00\x04\x00\xff\xff\xff\xff"+"\x20\x00\x04\x00\xff\xff\xff\xff"), 0)
	},
	"setxattrat": func(path string) error {
		at, name, value := append([]byte(path), 0), append([]byte(attributeName), 0), byte('x')
		args := struct {
			value       uint64
			size, flags uint32
		}{uint64(uintptr(unsafe.Pointer(&value))), 1, 0}
		return sys(unix.SYS_SETXATTRAT, uintptr(^uint(99)), uintptr(unsafe.Pointer(&at[0])), 0, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	},
	"setflags": func(path string) error {
		return opened(path, unix.O_RDONLY, func(fd int) error {
			flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
			if err != nil {
				return err
			}
			return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags^0x40) // FS_NODUMP_FL
		})
	},
	"filesetattr": func(path string) error {
		at := append([]byte(path), 0)
		var attr [24]byte
		return sys(unix.SYS_FILE_SETATTR, uintptr(^uint(99)), uintptr(unsafe.Pointer(&at[0])), uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	},
	"snapshot": func(arg string) error {
		dir, file, _ := strings.Cut(arg, " ")
		return opened(dir, unix.O_RDONLY, func(fd int) error {
			if err := (&volume{fd: int64(fd)}).ask(0x50009401, ".", "snapshot"); err != nil {
				return err
			}
			return readAll("snapshot/" + file)
		})
	},
	"chmoddevice": func(string) error { return unix.Chmod("/dev/null", 0o666) }, // as it is
	"setuid":      func(path string) error { return unix.Chmod(path, 0o4755) },
	"makesetuid": func(path string) error {
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o4755)
		return hasBit(path, fd, err)
	},
	"makesetuid2": func(path string) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, Mode: 0o4755})
		return hasBit(path, fd, err)
	},
	"mknodsetuid": func(path string) error { return hasBit(path, -1, unix.Mknod(path, unix.S_IFREG|0o4755, 0)) },
	"shm": func(id string) error {
		n, _ := strconv.Atoi(id)
		return sys(unix.SYS_SHMAT, uintptr(n), 0, 0)
	},
	"sem": func(id string) error {
		n, _ := strconv.Atoi(id)
		return sys(unix.SYS_SEMCTL, uintptr(n), 0, 12) // GETVAL
	},
	"msg": func(id string) error {
		n, _ := strconv.Atoi(id)
		msg := [2]uint64{1, 0}
		return sys(unix.SYS_MSGSND, uintptr(n), uintptr(unsafe.Pointer(&msg)), 1, unix.IPC_NOWAIT)
	},
	"mqueue": func(name string) error {
		at := append([]byte(name), 0)
		fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&at[0])), unix.O_RDWR, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return unix.Close(int(fd))
	},
}

func hasBit(path string, fd int, err error) error {
	if err != nil {
		return err
	}
	if fd >= 0 {
		_ = unix.Close(fd)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_ISUID == 0 {
		return errNotDone
	}
	return nil
}
