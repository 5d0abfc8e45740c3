package inside

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxPlan bounds a plan and a reply, in bytes.
const MaxPlan = 4 << 20

// exitSetup is the code of a process that could not set its sandbox up.
const exitSetup = 125

func init() {
	name, ok := os.LookupEnv(Env)
	if !ok {
		return
	}
	fd, err := strconv.Atoi(name)
	if err != nil || fd < 3 {
		return
	}
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || kind != unix.AF_UNIX {
		return
	}
	syscall.Exit(run(fd)) // nothing has begun that os.Exit would end; under the race detector that takes a second
}

// control is the socket to the process that made the sandbox. Its end means that
// the other process has died, or wants no more of this one.
type control int

func (c control) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(c), p)
		switch {
		case err == unix.EINTR: //nolint:errorlint // an errno
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (c control) plan() (*Plan, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > MaxPlan {
		return nil, errors.New("the plan is too large")
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(c, data); err != nil {
		return nil, err
	}
	plan := new(Plan)
	return plan, json.Unmarshal(data, plan)
}

func (c control) reply(r *Reply, listeners []int) {
	data, err := json.Marshal(r)
	if err != nil {
		return // strings and numbers
	}
	msg := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...) //nolint:gosec // short
	var rights []byte
	if len(listeners) > 0 {
		rights = unix.UnixRights(listeners...)
	}
	_ = unix.Sendmsg(int(c), msg, rights, nil, unix.MSG_NOSIGNAL) // if nobody reads it, we end soon
}

// run does everything, and returns the exit code of the process.
func run(fd int) int {
	c := control(fd)
	unix.CloseOnExec(fd)
	plan, err := c.plan()
	if err != nil {
		c.reply(&Reply{Error: "read the plan: " + err.Error()}, nil)
		return exitSetup
	}
	if plan.Mounted {
		if err := ownStderr(fd); err != nil {
			c.reply(&Reply{Error: err.Error()}, nil)
			return exitSetup
		}
	}
	// Nothing beyond 0 to 2 and what is handed on stays open.
	if err := unix.CloseRange(uint(fd)+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil { //nolint:gosec // a descriptor
		c.reply(&Reply{Error: "close descriptors: " + err.Error()}, nil)
		return exitSetup
	}
	// A signal that comes before the program does must not be lost, and the first
	// process of a PID namespace gets only those it waits for.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	if err := mark(); err != nil {
		c.reply(&Reply{Error: err.Error()}, nil)
		return exitSetup
	}
	makeThreads()
	if plan.Around {
		return around(plan, c, signals)
	}

	answer, has, child := begin(plan)
	c.reply(answer, has.listeners)
	if answer.Error != "" {
		return exitSetup
	}
	if plan.Probe {
		return 0
	}
	for _, l := range has.listeners {
		_ = unix.Close(l)
	}
	return (&keeper{plan: plan, control: c, signals: signals, child: child, asked: has.asked}).keep()
}

// begin sets the sandbox up and starts the program, on a thread that does nothing
// else: Landlock lets the program signal what is in its own domain, and the first
// thread, which stands for this process, is to stay out of that. The thread ends then,
// too, but where Landlock bounds no signals: there a program can end this process, and
// is ended with it, which the kernel does when the thread that started it ends.
func begin(plan *Plan) (answer *Reply, has held, child int) {
	answer = new(Reply)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this function
		var err error
		tied := false
		if has, err = setUp(plan, answer); err == nil && !plan.Probe {
			tied = !plan.Init && answer.Landlock < LandlockScopes
			child, err = start(plan, tied)
			if errno, ok := errors.AsType[syscall.Errno](err); ok {
				answer.NoStart = int(errno)
			}
		}
		if err != nil {
			answer.Error = err.Error()
		}
		close(done)
		if tied {
			select {} // until this process ends
		}
	}()
	<-done
	return answer, has, child
}

// held are descriptors of a sandbox.
type held struct {
	listeners []int
	asked     int // of the filter of system calls, -1 without
}

// setUp restricts this thread as the plan says.
func setUp(p *Plan, r *Reply) (has held, err error) {
	if p.Mounts {
		if r.HostProc, err = mountRoot(p); err != nil {
			return has, err
		}
	}
	if p.Loopback {
		if err := loopbackUp(); err != nil {
			return has, fmt.Errorf("bring the loopback interface up: %w", err)
		}
	}
	if p.Mounted {
		if err := checkMounted(p); err != nil {
			return has, err
		}
	}
	if err := p.lookAtInherited(); err != nil {
		return has, err
	}
	if has.listeners, r.Absent, err = listen(p.Listen); err != nil {
		return has, err
	}
	if err := enter(p); err != nil {
		return has, err
	}
	if !p.Init { // orphans come here, to be ended
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return has, fmt.Errorf("adopt orphans: %w", err)
		}
	}
	if err := dropCapabilities(p.Caps); err != nil {
		return has, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return has, fmt.Errorf("set no_new_privs: %w", err)
	}
	r.Landlock = landlockVersion()
	if err := restrictByLandlock(p, r.Landlock); err != nil {
		return has, err
	}
	if err := limit(p); err != nil {
		return has, err
	}
	has.asked, err = p.Filter.install()
	r.NoAnswer = has.asked < 0 && (p.Filter.Files || p.Filter.Shared)
	return has, err
}

// enter changes to the folder of the program and checks that it is the agreed one.
func enter(p *Plan) error {
	dir := p.Dir
	if dir == "" {
		dir = "/"
	}
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("the folder %s cannot be entered in the sandbox: %w", dir, err)
	}
	if p.DirIno == 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(".", &st); err != nil {
		return fmt.Errorf("the folder %s: %w", dir, err)
	}
	if st.Dev != p.DirDev || st.Ino != p.DirIno { //nolint:unconvert // differs by architecture
		return fmt.Errorf("the folder %s was replaced since it was agreed to, or is hidden in the sandbox", dir)
	}
	return nil
}

// checkMounted checks that the mounts of another program are the agreed ones.
func checkMounted(p *Plan) error {
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the root: %w", err)
	}
	defer func() { _ = unix.Close(root) }()
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Ino == 0 {
			continue
		}
		fd, _, err := r.pinned(root)
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.Access, r.Path, err)
		}
		_ = unix.Close(fd)
	}
	return nil
}

// start starts the program and gives up the standard streams, so that their other
// ends see the program's end. A tied program is killed when this thread ends.
func start(p *Plan, tied bool) (int, error) {
	files := make([]uintptr, 3+p.Keep)
	for i := range files {
		files[i] = uintptr(i)
	}
	// In a session of its own the program has no terminal: in that of yaya's it would write
	// to the one that yaya runs in, and take it over to read what is typed there.
	sys := &syscall.SysProcAttr{Setsid: !p.Terminal}
	if tied {
		sys.Pdeathsig = syscall.SIGKILL
	}
	pid, err := syscall.ForkExec(p.Path, p.Argv, &syscall.ProcAttr{Env: p.Env, Files: files, Sys: sys}) //nolint:gosec // running it is the purpose
	if err != nil {
		return 0, fmt.Errorf("start %s in the sandbox: %w", p.Path, err)
	}
	release(p.Keep)
	return pid, nil
}

// release closes the descriptors that the program has.
func release(keep int) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	for i := range 3 + keep {
		if err == nil && i < 3 {
			_ = unix.Dup3(null, i, 0)
		} else {
			_ = unix.Close(i)
		}
	}
}
