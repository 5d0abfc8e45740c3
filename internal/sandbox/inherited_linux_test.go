package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal makes a terminal of another program, and returns its path.
func (p *place) terminal() string {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Skipf("no terminal can be made here: %v", err)
	}
	p.t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		p.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprintf("/dev/pts/%d", n)
}

// datagrams listens for datagrams at a path, which it returns, and at an abstract address.
func (p *place) datagrams() string {
	path := p.ws + "/d"
	for _, at := range []string{path, "@" + p.abstract + "-d"} {
		c, err := net.ListenPacket("unixgram", at)
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _ = c.Close() })
	}
	return path
}

func init() {
	maps.Copy(attempts, map[string]func(string) error{
		"fchmod0": func(string) error {
			var st unix.Stat_t
			if err := unix.Fstat(0, &st); err != nil {
				return err
			}
			want := st.Mode & 0o7777
			if st.Mode&unix.S_IFMT != unix.S_IFCHR { // which others use
				want ^= 0o004
			}
			if err := unix.Fchmod(0, want); err != nil {
				return err
			}
			if err := unix.Fstat(0, &st); err != nil || st.Mode&0o7777 != want {
				return errors.Join(err, errNotDone)
			}
			return nil
		},
		"fchown0":    func(string) error { return unix.Fchown(0, os.Getuid(), os.Getgid()) },
		"futimes0":   func(string) error { return unix.Futimes(0, []unix.Timeval{{Sec: 1}, {Sec: 1}}) },
		"fsetxattr0": func(string) error { return unix.Fsetxattr(0, attributeName, []byte("x"), 0) },
		"setflags0": func(string) error {
			flags, err := unix.IoctlGetInt(0, unix.FS_IOC_GETFLAGS)
			if err != nil {
				return err
			}
			return unix.IoctlSetPointerInt(0, unix.FS_IOC_SETFLAGS, flags^0x40) // FS_NODUMP_FL
		},
		"readat0": func(path string) error {
			fd, err := unix.Openat(0, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		},
		"chmodat0": func(path string) error { return unix.Fchmodat(0, path, 0o644, 0) },
	})
}

// inherited are attempts by a file that the program was started with, and only reads.
var inherited = []struct{ name, profile, file, attempt string }{
	{"mode of a file", "check", "file", "fchmod0"},
	{"mode of a file", "command", "file", "fchmod0"},
	{"mode of a file", "plugin", "file", "fchmod0"},
	{"mode of a file by its link in proc", "check", "file", "chmod /proc/self/fd/0"},
	{"owner of a file", "check", "file", "fchown0"},
	{"times of a file", "check", "file", "futimes0"},
	{"attribute of a file", "check", "file", "fsetxattr0"},
	{"flags of a file", "check", "file", "setflags0"},
	{"mode of the terminal", "check", "terminal", "fchmod0"},
	{"times of the terminal", "check", "terminal", "futimes0"},
	{"mode of a device", "check", "null", "fchmod0"},
	{"mode of a device", "server", "null", "fchmod0"},
	{"times of a device", "check", "null", "futimes0"},
	{"credentials by a folder", "check", "folder", "readat0 ../home/.ssh/id"},
	{"yaya's key by a folder, guarded", "guarded", "folder", "readat0 ../own/key"},
	{"mode of credentials by a folder", "check", "folder", "chmodat0 ../home/.ssh/id"},
}

func (p *place) inherits(t *testing.T, kind string) *os.File {
	t.Helper()
	name := map[string]string{"file": p.outside + "/file", "null": os.DevNull, "folder": p.outside}[kind]
	if kind == "terminal" {
		name = p.terminal()
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Inherited files were opened through mounts of the host: a program cannot use them to
// get around the sandbox's mounts.
func TestInherited(t *testing.T) {
	self := testBinary(t)
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, c := range inherited {
			t.Run(backend+"/"+c.profile+"/"+c.name, func(t *testing.T) {
				needs(t, backend)
				p := newPlace(t)
				bare := exec.CommandContext(t.Context(), self)
				bare.Stdin, bare.Env = p.inherits(t, c.file), []string{attemptEnv + "=" + c.attempt}
				if out, err := bare.CombinedOutput(); err != nil {
					t.Skipf("this user cannot do it without a sandbox either (%v): %s", err, out)
				}
				p = newPlace(t)
				got, err := (&Box{Backend: backend, Own: []string{p.own}}).startWith(t, p.inherits(t, c.file), p.policy(t, c.profile), p.ws, []string{attemptEnv + "=" + c.attempt}, self)
				switch {
				case err != nil && c.file == "folder" && strings.Contains(err.Error(), "is a folder"):
				case err != nil:
					t.Fatalf("start of %q = %v, want no error", c.attempt, err)
				case got.code != prevented:
					t.Errorf("%q in a sandbox: code %d, output %q, want %d", c.attempt, got.code, got.out, prevented)
				}
			})
		}
	}
}

// A program reads and writes what it was started with, and changes its own files.
func TestInheritedFiles(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, kind := range []string{"file", "null", "terminal"} {
			t.Run(backend+"/"+kind, func(t *testing.T) {
				needs(t, backend)
				p := newPlace(t)
				script := `chmod 640 s-program && touch -d @1 s-program && test "$(stat -c %a,%Y s-program)" = 640,1`
				switch kind {
				case "file":
					script += ` && test "$(cat)" = data`
				case "null":
					script += ` && test -z "$(cat)"`
				case "terminal":
					script += ` && test -t 0 && stty -a >&2`
				}
				got, err := (&Box{Backend: backend, Own: []string{p.own}}).startWith(t, p.inherits(t, kind), p.policy(t, "check"), p.ws, nil, "sh", "-ec", script)
				if err != nil || got.code != 0 {
					t.Errorf("code %d, output %q, error %v", got.code, got.out, err)
				}
			})
		}
	}
}
