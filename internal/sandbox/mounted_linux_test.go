package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/racing"
)

// mounted is an attempt in a mount namespace of its own, in which the folders of a place
// are at second paths.
type mounted struct {
	Top, Backend, Profile, Attempt string
}

func (m mounted) at(name string) string { return filepath.Join(m.Top, name) }

// seconds are the second paths: where, and what is mounted there. The first ones come first.
var seconds = [][2]string{
	{"mnt/X", "home"},   // a folder above yaya's own
	{"beside", "home"},  // the same, beside it
	{"part", "own/sub"}, // a part of yaya's own
	{"conf.json", "home/.config/yaya/mcp.json"},
	{"own/big", "big"}, // a part of yaya's own that lies elsewhere
	{"home/ws/self", "home/ws"},
	{"home/shut/X", "home"}, // in a folder that is closed then
	{"tmp", "/tmp"},
	{"proc", "/proc"},
	{"alone", "home"}, // which cannot be mounted elsewhere
}

// makeSecond makes the folders of a place.
func makeSecond(t *testing.T) string {
	t.Helper()
	top := besidetmp.Dir(t)
	for _, name := range []string{"home/.ssh/id", "home/.config/yaya/mcp.json", "home/.local/state/yaya/key", "home/.local/bin/yaya", "home/.cache/yaya/sandbox/a", "home/cert", "home/run/file", "home/ws/.git/config", "own/sub/key", "big/key", "conf.json"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700), os.WriteFile(filepath.Join(top, name), []byte("old"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range seconds {
		if m[0] != "conf.json" {
			if err := os.MkdirAll(filepath.Join(top, m[0]), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return top
}

// mount mounts what [seconds] says.
func (m mounted) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, s := range seconds {
		from, flags := s[1], uintptr(unix.MS_BIND)
		if !filepath.IsAbs(from) {
			from = m.at(from)
		}
		if s[1] == "/proc" && os.Geteuid() != 0 {
			flags |= unix.MS_REC // a part of it may be locked
		}
		if err := unix.Mount(from, m.at(s[0]), "", flags, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", s[1], s[0], err)
		}
	}
	if err := unix.Mount("", m.at("alone"), "", unix.MS_UNBINDABLE, ""); err != nil {
		return err
	}
	return os.Chmod(m.at("home/shut"), 0)
}

// box is the sandbox of the attempt.
func (m mounted) box() (*Box, Policy, error) {
	box := &Box{Backend: m.Backend, Own: []string{m.at("own"), m.at("home/.config/yaya"), m.at("home/.local/state/yaya")}, Readable: []string{m.at("home/cert")}, Program: m.at("home/.local/bin/yaya")}
	p, err := Profile(m.Profile)
	if err != nil {
		return nil, p, err
	}
	p.Home = m.at("home")
	switch {
	case p.HostWrites:
		p.Hide = []string{m.at("home/.cache/yaya/sandbox")}
	case p.Strict:
		p.Read, err = OpenNamed("", m.at("mnt"))
	default:
		p.Write, p.Protect, err = Workspace(m.at("home/ws"))
	}
	return box, p, err
}

func init() {
	// mounted mounts, gives up the right to, and goes on as another attempt.
	attempts["mounted"] = func(arg string) error {
		var m mounted
		if err := errors.Join(json.Unmarshal([]byte(arg), &m), m.mount()); err != nil {
			return fmt.Errorf("mounts: %w", err)
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return err
		}
		name := "boxed " + arg
		if m.Backend == None {
			name = m.Attempt
		}
		if err := os.Setenv(attemptEnv, name); err != nil {
			return err
		}
		return syscall.Exec(self, os.Args, os.Environ())
	}
	// boxed makes an attempt in a sandbox.
	attempts["boxed"] = func(arg string) error {
		var m mounted
		if err := json.Unmarshal([]byte(arg), &m); err != nil {
			return err
		}
		box, p, err := m.box()
		if err != nil {
			return err
		}
		code, err := box.attempt(p, m.Attempt)
		if err != nil || code != didIt && code != prevented {
			fmt.Printf("no attempt: code %d, error %v\n", code, err)
			syscall.Exit(1)
		}
		if code == prevented {
			return errNotDone
		}
		return nil
	}
	// works asks whether a folder can be a workspace, gives whether a path may be given to a
	// program although another one is yaya's own, and plain whether it has no credentials.
	attempts["works"] = func(arg string) error {
		home, dir, _ := strings.Cut(arg, " ")
		return CheckWorkspace(home, dir)
	}
	attempts["gives"] = func(arg string) error {
		own, name, _ := strings.Cut(arg, " ")
		return MayGive(name, own)
	}
	attempts["plain"] = func(arg string) error {
		home, name, _ := strings.Cut(arg, " ")
		if Credentials(home, name) {
			return errors.New("it has credentials")
		}
		return nil
	}
	// shutread opens a folder again, and reads a file in it.
	attempts["shutread"] = func(arg string) error {
		dir, file, _ := strings.Cut(arg, " ")
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
		return readAll(file)
	}
}

// attempt makes an attempt in a sandbox, outside a test.
func (b *Box) attempt(p Policy, attempt string) (int, error) {
	r, err := b.Enter(p)
	if err != nil {
		return -1, err
	}
	defer r.Ended()
	self, err := os.Executable()
	if err != nil {
		return -1, err
	}
	cmd := exec.Command(self)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), attemptEnv+"="+attempt)
	if err := r.Wrap(cmd); err != nil {
		return -1, err
	}
	if err := cmd.Start(); err != nil {
		return -1, err
	}
	if err := r.Started(cmd.Process.Pid); err != nil {
		return -1, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	if err := cmd.Wait(); cmd.ProcessState == nil {
		return -1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// try makes the attempt where the second paths are, and returns its code.
func (m mounted) try(t *testing.T) (string, int) {
	t.Helper()
	arg, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testBinary(t))
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), attemptEnv+"=mounted "+string(arg))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUSER, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		}
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skipf("no mount namespace can be made here: %v", err)
	}
	if strings.Contains(string(out), "mounts: ") {
		t.Skipf("nothing can be mounted here: %s", out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A second path to a folder above what is hidden, kept or read-only, to the folder itself
// or to a part of it opens nothing, nor does the first one open by it.
func TestSecondPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	if racing.Enabled {
		without(t, 0) // which namespaces there are decides
		return
	}
	for _, c := range []struct {
		profiles, attempt string
		need              Need
		mounts            bool // Landlock alone does not prevent it
		root              bool // only root could do it
	}{
		{"command check server", "read TOP/mnt/X/.ssh/id", NeedHidden, false, false},
		{"command check", "read TOP/beside/.ssh/id", NeedHidden, false, false},
		{"command check", "read TOP/home/.ssh/id", NeedHidden, false, false},
		{"guarded command check server", "read TOP/mnt/X/.local/state/yaya/key", NeedHidden, false, false},
		{"guarded command check", "read TOP/beside/.local/state/yaya/key", NeedHidden, false, false},
		{"guarded command check", "read TOP/home/.local/state/yaya/key", NeedHidden, false, false},
		{"guarded command check", "list TOP/mnt/X/.local/state/yaya", NeedHidden, true, false},
		{"guarded", "write TOP/mnt/X/.config/yaya/mcp.json", NeedHidden, false, false},
		{"guarded", "write TOP/beside/.config/yaya/new", NeedHidden, false, false},
		{"guarded", "write TOP/home/.config/yaya/new", NeedHidden, false, false},
		{"guarded", "write TOP/conf.json", NeedHidden, false, false},
		{"guarded command", "read TOP/conf.json", NeedHidden, false, false},
		{"guarded command", "read TOP/alone/.local/state/yaya/key", NeedHidden, false, false},
		{"guarded command", "read TOP/part/key", NeedHidden, false, false},
		{"guarded command", "read TOP/big/key", NeedHidden, false, false},
		{"guarded", "rename TOP/mnt/X/.local/state/yaya", NeedHidden, false, false},
		{"guarded", "rename TOP/beside/.local/state", NeedHidden, false, false},
		{"guarded", "rename TOP/home/.local/state/yaya", NeedHidden, false, false},
		{"guarded", "rename TOP/home/.local", NeedHidden, false, false},
		{"guarded", "write TOP/mnt/X/.cache/yaya/sandbox/a", NeedHidden, true, false},
		{"guarded", "write TOP/beside/.local/bin/yaya", NeedHidden, true, false},
		{"guarded", "write TOP/mnt/X/cert", NeedHidden, false, false},
		{"guarded", "shutread TOP/home/shut TOP/home/shut/X/.local/state/yaya/key", NeedHidden, false, false},
		{"check command", "write TOP/home/ws/self/.git/config", NeedProtect, false, false},
		{"check command", "connect TOP/mnt/X/run/s", NeedSockets, false, false},
		{"check command", "read TOP/tmp/NAME", NeedHidden, false, false},
		{"guarded", "openw TOP/proc/sys/kernel/core_pattern", NeedHidden, false, true},
	} {
		for _, backend := range []string{Namespaces, Bwrap, Landlock} {
			for _, name := range strings.Fields(c.profiles) {
				t.Run(strings.Join([]string{backend, name, strings.ReplaceAll(c.attempt, "/", "|")}, "/"), func(t *testing.T) {
					b := needs(t, backend)
					if c.root && os.Geteuid() != 0 {
						t.Skip("only root could do it")
					}
					if c.mounts && backend == Landlock {
						t.Skip("Landlock cannot; the report says so")
					}
					p := profile(t, name)
					if c.need&NeedProtect != 0 {
						p.Protect = []Path{{}}
					}
					if e, _, err := b.decide(&p, nil); err != nil || e.Has&c.need == 0 {
						t.Skipf("it does not enforce %s: %v", c.need, err)
					}
					for _, in := range []string{None, backend} {
						m := mounted{Top: makeSecond(t), Backend: in, Profile: name}
						other := m.other(t)
						m.Attempt = strings.NewReplacer("TOP", m.Top, "NAME", other).Replace(c.attempt)
						out, code := m.try(t)
						switch want := map[bool]int{true: didIt, false: prevented}[in == None]; {
						case in == None && code == prevented && strings.Contains(out, "permission denied") && os.Geteuid() != 0:
							t.Skipf("this user cannot do it without a sandbox either: %s", out)
						case code != want:
							t.Errorf("%q in %s: code %d, output %q; want %d", m.Attempt, in, code, out, want)
						}
						_ = os.Chmod(m.at("home/shut"), 0o700) // to be removed
					}
				})
			}
		}
	}
}

// Questions, offers and refusals take a second path for the first.
func TestSecondPathsAreKnown(t *testing.T) {
	for name, c := range map[string]struct {
		attempt string
		want    int
	}{
		"the home folder as a workspace":       {"works TOP/home TOP/mnt/X", prevented},
		"nor what holds it":                    {"works TOP/home TOP/mnt", prevented},
		"nor credentials":                      {"works TOP/home TOP/beside/.ssh", prevented},
		"a folder in it is one":                {"works TOP/home TOP/mnt/X/ws", didIt},
		"yaya's own is not given":              {"gives TOP/home/.config/yaya TOP/mnt/X/.config/yaya/mcp.json", prevented},
		"nor a file of it":                     {"gives TOP/home/.config/yaya TOP/conf.json", prevented},
		"a folder beside it is":                {"gives TOP/home/.config/yaya TOP/mnt/X/ws", didIt},
		"credentials are said to be there":     {"plain TOP/home TOP/mnt/X/.ssh/id", prevented},
		"and are not said to be in a folder":   {"plain TOP/home TOP/mnt/X/ws", didIt},
		"the path of the first one, as always": {"plain TOP/home TOP/home/.ssh", prevented},
	} {
		t.Run(name, func(t *testing.T) {
			m := mounted{Top: makeSecond(t), Backend: None}
			m.Attempt = strings.ReplaceAll(c.attempt, "TOP", m.Top)
			out, code := m.try(t)
			if code != c.want {
				t.Errorf("%q: code %d, %q; want %d", m.Attempt, code, out, c.want)
			}
			_ = os.Chmod(m.at("home/shut"), 0o700) // to be removed
		})
	}
}

// other makes what others have: a socket, and a file in /tmp, of which it returns the name.
func (m mounted) other(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("unix", m.at("home/run/s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f, err := os.CreateTemp("/tmp", "yaya-test-") //nolint:usetesting // where programs keep such files
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	if _, err := f.WriteString("words"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(f.Name())
}
