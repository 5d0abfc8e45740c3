package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/racing"
)

// place is the folder of an attempted escape: not below /tmp, which a sandbox hides anyway.
type place struct {
	t                           *testing.T
	dir, home, own, outside, ws string
	secret                      string // in home
	key                         string // in own
	other                       *exec.Cmd
	abstract, path, tcp         string // sockets of the host
}

func newPlace(t *testing.T) *place {
	t.Helper()
	top := besidetmp.Dir(t)
	dir := top + "/p"
	p := &place{t: t, dir: dir, home: dir + "/home", own: dir + "/own", outside: dir + "/outside", ws: dir + "/ws"}
	p.secret, p.key = p.home+"/.ssh/id", p.own+"/key"
	if err := subvolume(top, "p"); err != nil && !errors.Is(err, unix.ENOTTY) {
		t.Fatalf("subvolume = %v, want no error, or %v", err, unix.ENOTTY)
	}
	for path, data := range map[string]string{p.secret: "secret", p.key: "key", p.outside + "/file": "data", p.outside + "/tagged": "data", p.ws + "/s-program": "#!/bin/sh", p.ws + "/.git/config": "[core]", p.ws + "/.git/hooks/pre-commit": "#!/bin/sh", p.ws + "/.git/HEAD": "ref",
		p.ws + "/.git/commondir": ".", p.ws + "/.git/modules/a/b/config": "[core]", p.ws + "/.git/modules/a/b/hooks/pre-commit": "#!/bin/sh", p.ws + "/.git/modules/m/modules/n/config": "[core]",
		p.ws + "/.git/worktrees/w/commondir": "../..", p.ws + "/.git/worktrees/w/config.worktree": "[core]"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("file", p.outside+"/link"), unix.Setxattr(p.outside+"/tagged", attributeName, []byte("x"), 0)); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		t.Fatalf("got %v, want no error, or %v", err, unix.EOPNOTSUPP)
	}
	p.other = exec.CommandContext(t.Context(), "sleep", "300")
	p.other.Env = []string{"SECRET=1"}
	p.other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.other.Process.Kill()
		_ = p.other.Wait()
	})
	p.abstract, p.path = "yaya-test-"+filepath.Base(top), p.ws+"/s"
	for _, addr := range []string{"@" + p.abstract, p.path, "127.0.0.1:0"} {
		network := "unix"
		if strings.HasPrefix(addr, "127") {
			network = "tcp"
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		p.tcp = l.Addr().String()
	}
	if err := unix.Mkfifo(p.ws+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) policy(t *testing.T, name string) Policy {
	t.Helper()
	if name == "home" { // all that is around can be written
		pol := profile(t, "check")
		pol.Home, pol.Write = p.home, open(t, filepath.Dir(p.dir))
		return pol
	}
	pol := profile(t, name)
	pol.Home = p.home
	if !pol.HostWrites {
		var err error
		if pol.Write, pol.Protect, err = Workspace(p.ws); err != nil {
			t.Fatal(err)
		}
	}
	return pol
}

// escape is one attempt, with its profile, and the limit that has to prevent it.
type escape struct {
	name    string
	profile string
	try     func(p *place) string
	need    Need
}

// escapes is the table, with escapesToOthers, escapesToNobody and escapesByAttributes.
var escapes = []escape{
	{"read credentials by path", "check", func(p *place) string { return "read " + p.secret }, NeedHidden},
	{"read credentials by a symbolic link", "check", func(p *place) string { return "symlink " + p.secret }, NeedHidden},
	{"read credentials by a hard link", "check", func(p *place) string { return "hardlink " + p.secret }, NeedHidden},
	{"list credentials", "check", func(p *place) string { return "list " + p.home + "/.ssh" }, NeedHidden},
	{"read yaya's key", "check", func(p *place) string { return "read " + p.key }, NeedHidden},
	{"read yaya's key, guarded", "guarded", func(p *place) string { return "read " + p.key }, NeedHidden},
	{"read yaya's key by a hard link, guarded", "guarded", func(p *place) string { return "hardlink " + p.key }, NeedHidden},
	{"overwrite yaya's key, guarded", "guarded", func(p *place) string { return "write " + p.key }, NeedHidden},
	{"move yaya's folder away, guarded", "guarded", func(p *place) string { return "rename " + p.own }, NeedHidden},
	{"move a folder above yaya's away, guarded", "guarded", func(p *place) string { return "rename " + p.dir }, NeedHidden},
	{"read by the root of another process", "check", func(p *place) string { return fmt.Sprintf("read /proc/%d/root%s", p.other.Process.Pid, p.key) }, NeedProcesses},
	{"read by the root of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("read /proc/%d/root%s", p.other.Process.Pid, p.key) }, NeedHidden},
	{"read a file that is not named", "server", func(p *place) string { return "read " + p.outside + "/file" }, NeedStrict},
	{"read a file that is not named", "plugin", func(p *place) string { return "read " + p.outside + "/file" }, NeedStrict},
	{"write outside", "check", func(p *place) string { return "write " + p.outside + "/file" }, NeedWrites},
	{"make a file outside", "check", func(p *place) string { return "write " + p.outside + "/new" }, NeedWrites},
	{"rename outside", "check", func(p *place) string { return "rename " + p.outside + "/file" }, NeedWrites},
	{"remove outside", "command", func(p *place) string { return "remove " + p.outside + "/file" }, NeedWrites},
	{"open a setting of the kernel", "check", func(*place) string { return "openw /proc/sys/kernel/core_pattern" }, NeedWrites},
	{"open a control group", "check", func(*place) string { return "openw /sys/fs/cgroup/memory/memory.limit_in_bytes" }, NeedWrites},
	{"open a setting of the kernel, guarded", "guarded", func(*place) string { return "openw /proc/sys/kernel/core_pattern" }, NeedHidden},
	{"open the disk, guarded", "guarded", func(*place) string { return "openw " + disk() }, NeedHidden},
	{"open the disk by another name, guarded", "guarded", func(p *place) string { return "openr " + p.otherDisk() }, NeedHidden},
	{"open the disk by a device for commands, guarded", "guarded", func(p *place) string { return "openr " + p.generic() }, NeedHidden},
	{"make a device, guarded", "guarded", func(*place) string { return "mknod" }, NeedHidden},
	{"put another folder in the place of yaya's", "home", func(p *place) string { return "rename " + p.dir }, NeedHidden},
	{"make a device", "check", func(*place) string { return "mknod" }, NeedWrites},
	{"write .git/config", "check", func(p *place) string { return "write " + p.ws + "/.git/config" }, NeedProtect},
	{"write a hook", "check", func(p *place) string { return "write " + p.ws + "/.git/hooks/pre-commit" }, NeedProtect},
	{"make a hook", "check", func(p *place) string { return "write " + p.ws + "/.git/hooks/post-checkout" }, NeedProtect},
	{"write .git/commondir", "check", func(p *place) string { return "write " + p.ws + "/.git/commondir" }, NeedProtect},
	{"remove .git/commondir", "check", func(p *place) string { return "remove " + p.ws + "/.git/commondir" }, NeedProtect},
	{"write the configuration of a module", "check", func(p *place) string { return "write " + p.ws + "/.git/modules/a/b/config" }, NeedProtect},
	{"write the configuration of a module's module", "check", func(p *place) string { return "write " + p.ws + "/.git/modules/m/modules/n/config" }, NeedProtect},
	{"make a hook of a module", "check", func(p *place) string { return "write " + p.ws + "/.git/modules/a/b/hooks/post-checkout" }, NeedProtect},
	{"move a module away", "check", func(p *place) string { return "rename " + p.ws + "/.git/modules/a" }, NeedProtect},
	{"write the commondir of a work tree", "check", func(p *place) string { return "write " + p.ws + "/.git/worktrees/w/commondir" }, NeedProtect},
	{"write the configuration of a work tree", "check", func(p *place) string { return "write " + p.ws + "/.git/worktrees/w/config.worktree" }, NeedProtect},
	{"move a work tree's folder away", "check", func(p *place) string { return "rename " + p.ws + "/.git/worktrees/w" }, NeedProtect},
	{"move .git away", "check", func(*place) string { return "mvgit" }, NeedProtect},
	{"environment of another process", "check", func(p *place) string { return fmt.Sprintf("read /proc/%d/environ", p.other.Process.Pid) }, NeedProcesses},
	{"environment of another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("read /proc/%d/environ", p.other.Process.Pid) }, NeedProcesses},
	{"trace another process", "check", func(p *place) string { return fmt.Sprintf("ptrace %d", p.other.Process.Pid) }, NeedProcesses},
	{"trace another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("ptrace %d", p.other.Process.Pid) }, NeedProcesses},
	{"read the memory of another process", "guarded", func(p *place) string { return fmt.Sprintf("vmread %d", p.other.Process.Pid) }, NeedProcesses},
	{"signal another process", "check", func(p *place) string { return fmt.Sprintf("signal %d", p.other.Process.Pid) }, NeedProcesses},
	{"signal another process, guarded", "guarded", func(p *place) string { return fmt.Sprintf("signal %d", p.other.Process.Pid) }, NeedProcesses},
	{"kill the sandbox's own process", "check", func(*place) string { return "killkeeper" }, NeedTree},
	{"kill the sandbox's own process, guarded", "guarded", func(*place) string { return "killkeeper" }, NeedTree},
	{"enter a namespace of another process", "check", func(p *place) string { return fmt.Sprintf("setns %d", p.other.Process.Pid) }, NeedProcesses},
	{"abstract socket", "check", func(p *place) string { return "abstract " + p.abstract }, NeedSockets},
	{"path socket", "check", func(p *place) string { return "connect " + p.path }, NeedSockets},
	{"path socket by a pair of sockets", "check", func(p *place) string { return "connectpair " + p.datagrams() }, NeedSockets},
	{"path socket by a pair of sockets", "plugin", func(p *place) string { return "connectpair " + p.datagrams() }, NeedSockets},
	{"send to a path socket by a pair of sockets", "server", func(p *place) string { return "sendpair " + p.datagrams() }, NeedSockets},
	{"abstract socket by a pair of sockets", "check", func(p *place) string { p.datagrams(); return "sendpair @" + p.abstract + "-d" }, NeedSockets},
	{"a pair of sockets of virtual machines", "check", func(*place) string { return "vsockpair" }, NeedKernel},
	{"port of the host", "check", func(p *place) string { return "tcp " + p.tcp }, NeedNetwork},
	{"port of the host", "plugin", func(p *place) string { return "tcp " + p.tcp }, NeedNetwork},
	{"port of the host", "command", func(p *place) string { return "tcp " + p.tcp }, NeedNetwork},
	{"MPTCP", "check", func(*place) string { return "mptcp" }, NeedKernel},
	{"MPTCP, guarded", "guarded", func(*place) string { return "mptcp" }, NeedKernel},
	{"TCP fast open", "check", func(p *place) string { return "fastopen " + p.tcp }, NeedKernel},
	{"TCP fast open, guarded", "guarded", func(p *place) string { return "fastopen " + p.tcp }, NeedKernel},
	{"vsock", "check", func(*place) string { return "vsock" }, NeedKernel},
	{"sock_diag", "check", func(*place) string { return "sockdiag" }, NeedKernel},
	{"packet socket", "check", func(*place) string { return "packet" }, NeedKernel},
	{"kernel cryptography", "check", func(*place) string { return "alg" }, NeedKernel},
	{"io_uring", "check", func(*place) string { return "iouring" }, NeedKernel},
	{"keyring", "check", func(*place) string { return "keyring" }, NeedKernel},
	{"userfaultfd", "check", func(*place) string { return "userfaultfd" }, NeedKernel},
	{"the device for page faults", "guarded", func(*place) string { return "openw /dev/userfaultfd" }, NeedKernel},
	{"clone3", "browser", func(*place) string { return "clone3" }, NeedKernel},
	{"terminal of another program", "check", func(p *place) string { return "openw " + p.terminal() }, NeedWrites},
	{"terminal of another program", "server", func(p *place) string { return "openw " + p.terminal() }, NeedWrites},
	{"TIOCSTI", "check", func(*place) string { return "tiocsti" }, NeedKernel},
	{"TIOCSTI, guarded", "guarded", func(*place) string { return "tiocsti" }, NeedKernel},
	{"nested namespaces", "check", func(*place) string { return "userns" }, NeedKernel},
	{"unmount", "guarded", func(p *place) string { return "umount " + p.own }, NeedHidden},
	{"descriptors of yaya", "check", func(*place) string { return "descriptor" }, NeedTree},
}

// disk is a disk of this machine.
func disk() string {
	disks, err := os.ReadDir("/sys/class/block")
	if err != nil || len(disks) == 0 {
		return "/dev/no-disk"
	}
	return "/dev/" + disks[len(disks)-1].Name()
}

// node makes a device in /dev, which an ordinary user cannot.
func (p *place) node(name string, mode uint32, device uint64) string {
	if err := unix.Mknod(name, mode|0o600, int(device)); err != nil && !errors.Is(err, unix.EEXIST) {
		p.t.Skipf("no device can be made here: %v", err)
	}
	p.t.Cleanup(func() { _ = unix.Unlink(name) })
	return name
}

// otherDisk is a disk by a name that the system does not know.
func (p *place) otherDisk() string {
	var st unix.Stat_t
	if err := unix.Stat(disk(), &st); err != nil {
		p.t.Skip(err)
	}
	return p.node("/dev/yaya-test-"+filepath.Base(filepath.Dir(p.dir)), unix.S_IFBLK, st.Rdev)
}

// generic has the name of a device that passes commands on to a disk.
func (p *place) generic() string {
	return p.node(fmt.Sprintf("/dev/sg%d9876", os.Getpid()), unix.S_IFCHR, unix.Mkdev(1, 3))
}

// needless are attempts that cannot succeed without a sandbox: what they undo is the
// sandbox's own.
func needless(name string) bool {
	return name == "unmount" || name == "descriptors of yaya" || strings.HasPrefix(name, "kill the sandbox's own")
}

func (p *place) bare(t *testing.T, attempt string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir = p.ws
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), attemptEnv + "=" + attempt}
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("the attempt %s ended with %v, want an exit code", attempt, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestEscapes tries each escape with each back end. Each has to succeed without a
// sandbox, or the test would show nothing: then it is skipped with the reason.
func TestEscapes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	if racing.Enabled { // the rest of the package has looked for races
		without(t, 100)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		box := &Box{Backend: backend}
		if _, err := box.choose(Probe()); err != nil {
			t.Run(backend, func(t *testing.T) { t.Skip(err) })
			continue
		}
		for _, e := range slices.Concat(escapes, escapesToOthers, escapesToNobody, escapesByAttributes) {
			t.Run(backend+"/"+e.profile+"/"+e.name, func(t *testing.T) {
				if !needless(e.name) {
					p := newPlace(t)
					if out, code := p.bare(t, e.try(p)); code != didIt {
						t.Skipf("this user cannot do it without a sandbox either (%d): %s", code, out)
					}
				}
				p := newPlace(t)
				box := &Box{Backend: backend, Own: []string{p.own}, Yaya: p.other.Process.Pid}
				got, err := box.start(t, p.policy(t, e.profile), p.ws, []string{attemptEnv + "=" + e.try(p)}, self)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case got.enforced.Has&e.need == 0:
					if len(got.enforced.Missing) == 0 {
						t.Errorf("%s is not enforced, and the report says nothing", e.need)
					}
					t.Skipf("%s does not enforce %s, and says so: %s", backend, e.need, strings.Join(got.enforced.Missing, "; "))
				case got.code != prevented:
					t.Errorf("%q in a sandbox: code %d, output %q, want %d", e.try(p), got.code, got.out, prevented)
				default:
					t.Logf("prevented: %s", strings.TrimSpace(got.out))
				}
			})
		}
	}
}

// A sandbox that enforces something still lets a program do its work.
func TestWorkGoesOn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		if _, err := (&Box{Backend: backend}).choose(Probe()); err != nil {
			t.Logf("%s: %v", backend, err)
			continue
		}
		for _, c := range []struct{ name, profile, attempt string }{
			{"write in the workspace", "check", "write new"},
			{"write in a temporary folder", "check", "write TMP/x"},
			{"rename in the workspace", "check", "rename .git/HEAD"},
			{"read outside", "check", "read OUTSIDE/file"},
			{"write a device", "check", "write /dev/null"},
			{"write outside, guarded", "guarded", "write OUTSIDE/file"},
			{"credentials, guarded", "guarded", "read SECRET"},
			{"a socket of the host's, guarded", "guarded", "connect SOCKET"},
			{"an abstract socket of the host's, guarded", "guarded", "abstract NAME"},
			{"read the system", "plugin", "read /etc/passwd"},
		} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				p := newPlace(t)
				attempt := strings.NewReplacer("OUTSIDE", p.outside, "SECRET", p.secret, "SOCKET", p.path, "NAME", p.abstract).Replace(c.attempt)
				pol := p.policy(t, c.profile)
				if strings.Contains(attempt, "TMP") {
					script := `echo x > "$TMPDIR/x" && cat "$TMPDIR/x"`
					got, err := (&Box{Backend: backend, Own: []string{p.own}}).start(t, pol, p.ws, nil, "sh", "-c", script)
					if err != nil || got.code != 0 {
						t.Errorf("code %d, output %q, error %v", got.code, got.out, err)
					}
					return
				}
				got, err := (&Box{Backend: backend, Own: []string{p.own}}).start(t, pol, p.ws, []string{attemptEnv + "=" + attempt}, self)
				if err != nil || got.code != didIt {
					t.Errorf("%q: code %d, output %q, error %v", attempt, got.code, got.out, err)
				}
			})
		}
	}
}

// upThenEnd reads a pipe until a process has written to it, and then until no process
// holds it open.
func upThenEnd(t *testing.T, f *os.File, up string, end func()) {
	t.Helper()
	line := make([]byte, 3)
	if err := f.SetReadDeadline(time.Now().Add(100 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := f.Read(line)
		if n > 0 {
			break
		}
		if err != nil && err != io.EOF { // nobody has opened it so far
			t.Fatalf("the process did not come up: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := os.WriteFile(up, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end()
	if n, err := f.Read(line); err != io.EOF {
		t.Errorf("read %d, %v; want the end: the process lives", n, err)
	}
}

func fifo(t *testing.T, p *place) *os.File {
	t.Helper()
	fd, err := unix.Open(p.ws+"/fifo", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "fifo")
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Nothing outlives its program, nor a yaya that is killed with -9.
func TestNothingOutlives(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, name := range []string{"check", "guarded"} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				if _, err := (&Box{Backend: backend}).choose(Probe()); err != nil {
					t.Skip(err)
				}
				p := newPlace(t)
				f := fifo(t, p)
				ended := make(chan result, 1)
				go func() {
					got, err := (&Box{Backend: backend, Own: []string{p.own}}).start(t, p.policy(t, name), p.ws, []string{attemptEnv + "=outlive " + p.ws + "/fifo"}, self)
					if err != nil {
						t.Errorf("start of the program = %v, want no error", err)
					}
					ended <- got
				}()
				upThenEnd(t, f, p.ws+"/up", func() {
					if got := <-ended; got.code != didIt {
						t.Errorf("the program: code %d, output %q", got.code, got.out)
					}
				})
			})
			t.Run(backend+"/"+name+"/kill -9", func(t *testing.T) {
				if _, err := (&Box{Backend: backend}).choose(Probe()); err != nil {
					t.Skip(err)
				}
				p := newPlace(t)
				f := fifo(t, p)
				owner := exec.CommandContext(t.Context(), self)
				owner.Dir = p.ws
				owner.Env = append(os.Environ(), attemptEnv+"=own "+strings.Join([]string{backend, name, p.home, p.own}, " "))
				var out bytes.Buffer
				owner.Stdout, owner.Stderr = &out, &out
				if err := owner.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = owner.Wait() }()
				upThenEnd(t, f, p.ws+"/up", func() { _ = owner.Process.Kill() })
				if t.Failed() {
					t.Log(out.String())
				}
			})
		}
	}
}

func init() {
	// own is a yaya that runs something in a sandbox until it is killed.
	attempts["own"] = func(arg string) error {
		words := strings.Fields(arg)
		pol, err := Profile(words[1])
		if err != nil {
			return err
		}
		pol.Home = words[2]
		if !pol.HostWrites {
			here, err := os.Getwd()
			if err != nil {
				return err
			}
			if pol.Write, pol.Protect, err = Workspace(Real(here)); err != nil {
				return err
			}
		}
		r, err := (&Box{Backend: words[0], Own: words[3:]}).Enter(pol)
		if err != nil {
			return err
		}
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command(self)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), attemptEnv+"=stay "+dir+"/fifo")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := r.Wrap(cmd); err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := r.Started(cmd.Process.Pid); err != nil {
			return err
		}
		return cmd.Wait()
	}
}

// TestEscapesAsOrdinaryUser runs the tables again as a user who is not root.
func TestEscapesAsOrdinaryUser(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	if os.Geteuid() != 0 {
		t.Skip("this is that user already")
	}
	const nobody = 65534
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := besidetmp.Dir(t)
	binary := dir + "/sandbox.test"
	if racing.Enabled {
		self = plain(t, dir)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(binary, data, 0o755), os.Chmod(binary, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); errors.Is(err, os.ErrPermission) {
		t.Skipf("this root gives no files away, as in a sandbox: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^(TestEscapes|TestWorkGoesOn|TestNothingOutlives.*|TestLimits|TestPrograms|TestPoisonedCaches|TestInherited|TestInheritedFiles|TestChangesOfFiles|TestProgramsThatChangeFiles|TestSecondPaths|TestSecondPathsAreKnown)$", "-test.v", "-test.skip", "^TestPrograms$/.*/go_build|TestProgramsThatChangeFiles/(go|pip)")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("another user cannot run a program below this folder: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("as user %d: %v", nobody, err)
	}
	if n := bytes.Count(out, []byte("--- PASS: TestEscapes/")); n < 200 {
		t.Errorf("%d escapes were tried, want at least 200", n)
	}
}

// plain builds this test program without the race detector, with which each of the hundreds of attempts
// takes three times as long.
func plain(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "plain.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-c", "-o", name, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c = %v, want no error\n%s", err, out)
	}
	return name
}

// without runs a test again without the race detector. It has to pass there, and to make at least so
// many attempts with each back end that works here.
func without(t *testing.T, each int) {
	t.Helper()
	least := 0
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		if _, err := (&Box{Backend: backend}).choose(Probe()); err == nil {
			least += each
		}
	}
	out, err := exec.CommandContext(t.Context(), plain(t, t.TempDir()), "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "20m").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%s without the race detector: %v", t.Name(), err)
	}
	if n := bytes.Count(out, []byte("--- PASS: "+t.Name()+"/")); n < least {
		t.Errorf("%d of its attempts were made, want at least %d", n, least)
	}
}
