package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// sandboxExec puts a program in a sandbox and becomes it.
const sandboxExec = "/usr/bin/sandbox-exec"

// runSystem is the part of a run that is specific to macOS.
type runSystem struct {
	tmp   string
	late  time.Duration
	mu    sync.Mutex
	pid   int
	timer *time.Timer
}

// Wrap changes a command, whose Path is absolute, so that it starts in the sandbox.
// It comes last before Start; Started and Ended follow.
func (r *Run) Wrap(cmd *exec.Cmd) error {
	if r.Enforced.Backend == None {
		return nil
	}
	p := &r.policy
	for _, agreed := range slices.Concat(p.Read, p.Write, p.Partly, p.Protect, p.Runtimes) {
		now, err := Open(agreed.name)
		if err != nil {
			return err
		}
		_ = now.file.Close() // it was only to be compared
		if now.dev != agreed.dev || now.ino != agreed.ino {
			return fmt.Errorf("%s was replaced since it was agreed to", agreed.name)
		}
	}
	plan := &inside.Plan{Path: cmd.Path, Argv: cmd.Args, Env: cmd.Env, Strict: p.Strict, HostWrites: p.HostWrites}
	r.lookAtManagers(cmd.Env)
	dir, err := filepath.Abs(cmd.Dir)
	if err != nil {
		return err
	}
	r.dir = real(dir)
	if !p.HostWrites && p.Tmp == "" {
		if r.system.tmp, err = os.MkdirTemp("", "yaya-sandbox-"); err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
	}
	if err := r.addRules(plan); err != nil {
		return err
	}
	for i := range plan.Rules {
		plan.Rules[i].Path = spelled(plan.Rules[i].Path)
	}
	port, proxyURL := 0, ""
	if p.Net.Mode == Hosts {
		if port, proxyURL, err = r.listen(); err != nil {
			return err
		}
	}
	text, params := seatbelt(plan, p, port, r.box.listens())
	args := append([]string{"sandbox-exec", "-p", text}, params...)
	cmd.Env = environ(p, cmd.Env, r.tmp(true), proxyURL, r.managersEnv(cmd.Env, false, false)...)
	cmd.Args = append(append(args, cmd.Path), cmd.Args[1:]...)
	cmd.Path, r.system.late = sandboxExec, p.Limits.Time
	return nil
}

// listen serves the proxy at a port of the host's, which others can reach: it wants a
// password.
func (r *Run) listen() (port int, proxyURL string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // takes no time
	if err != nil {
		return 0, "", fmt.Errorf("listen for a sandbox: %w", err)
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, "", errors.Join(errors.New("listen for a sandbox: not an address of TCP"), l.Close())
	}
	proxy := newProxy(r.policy.Net)
	proxy.password, proxy.listens = rand.Text(), r.box.listens
	if l, err = proxy.room().listener(l); err != nil {
		return 0, "", err
	}
	r.add(serveHTTP(l, proxy))
	return at.Port, fmt.Sprintf("http://%s:%s@127.0.0.1:%d", proxyUser, proxy.password, at.Port), nil
}

// spelled is a path in the spelling of the file system, which may not tell upper from
// lower case where a profile does.
func spelled(name string) string {
	f, err := os.Open(name) //nolint:forbidigo // a path of the policy
	if err != nil {
		return name
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, 1024) // MAXPATHLEN
	var pin runtime.Pinner
	pin.Pin(&buf[0])
	defer pin.Unpin()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_GETPATH, int(uintptr(unsafe.Pointer(&buf[0])))); err != nil { //nolint:gosec // the kernel's interface
		return name
	}
	return unix.ByteSliceToString(buf)
}

// Started notes the process, which is the program itself.
func (r *Run) Started(pid int) error {
	r.system.mu.Lock()
	defer r.system.mu.Unlock()
	r.system.pid = pid
	if r.system.late > 0 {
		r.system.timer = time.AfterFunc(r.system.late, func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // Ended stops it
	}
	return nil
}

// PID returns the id of the program.
func (r *Run) PID() int {
	r.system.mu.Lock()
	defer r.system.mu.Unlock()
	return r.system.pid
}

// Keeps reports that nothing ends what a program leaves.
func (*Run) Keeps() bool { return false }

// End does nothing: the program is all that there is to end.
func (*Run) End() {}

// Ended ends what is left of the run. It is called once nothing will be started, or
// the program has ended; more than once does nothing.
func (r *Run) Ended() {
	r.mu.Lock()
	done := r.ended
	r.ended = true
	r.mu.Unlock()
	if done {
		return
	}
	r.system.mu.Lock()
	r.system.pid = 0
	if r.system.timer != nil {
		r.system.timer.Stop()
	}
	r.system.mu.Unlock()
	r.stopServing()
	if r.system.tmp != "" {
		_ = os.RemoveAll(r.system.tmp) //nolint:forbidigo // made by this run
	}
	_ = closeAll(r.policy)
}

func newProber() *prober {
	about := func() Report {
		r := Report{System: "macOS", User: "ordinary user"}
		if version, err := unix.Sysctl("kern.osproductversion"); err == nil {
			r.System += " " + version
		}
		if os.Geteuid() == 0 {
			r.User = "root"
		}
		return r
	}
	return &prober{about: about, ends: []*backEnd{{name: Seatbelt, try: func() found {
		err := try()
		if err == nil {
			return found{}
		}
		return found{why: err.Error(), final: errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOENT)}
	}}}}
}

// try runs a program in a sandbox.
func try() error {
	p, err := Profile("check")
	if err != nil {
		return err
	}
	run := &Run{box: &Box{}, policy: p, Enforced: Enforced{Backend: Seatbelt}}
	defer run.Ended()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/bin/true")
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = "/", &said
	if err := run.Wrap(cmd); err != nil {
		return err
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", sandboxExec, err, strings.TrimSpace(said.String()))
	}
	return nil
}
