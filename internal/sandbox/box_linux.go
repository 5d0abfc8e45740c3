package sandbox

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// startWithin bounds how long the first process of a sandbox takes.
const startWithin = 20 * time.Second

// runSystem is the part of a run that is specific to Linux.
type runSystem struct {
	plan   *inside.Plan
	around *inside.Plan // of the process around bubblewrap
	ours   *net.UnixConn
	theirs *os.File
	pid    int // of the first process
	tmp    string
	group  *os.File // the control group, nil without
	// entrances are the listeners in the sandbox, in the order of the plan.
	entrances []entrance
	room      *room // of those
}

// entrance is a listener in a sandbox, and what serves it.
type entrance struct {
	at    netip.AddrPort
	spare bool // the sandbox may lack it
	serve func(net.Listener) server
}

// helperCaps are the capabilities that the first process needs in its own namespaces,
// and gives up before it starts the program.
var helperCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_NET_BIND_SERVICE}

// rootCaps are kept for root where the host's files can be written: what root
// configured works on files of all users, as it did.
var rootCaps = []uint{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE}

// Wrap changes a command, whose Path is absolute, so that it starts in the sandbox.
// It comes last before Start; Started and Ended follow.
func (r *Run) Wrap(cmd *exec.Cmd) error {
	if r.Enforced.Backend == None {
		return nil
	}
	plan, err := r.makePlan(cmd)
	if err != nil {
		return err
	}
	if !r.policy.HostWrites { // who can write there moves itself to another one
		if r.system.group, err = group(r.policy.Limits); err != nil {
			return err
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a sandbox: %w", err)
	}
	theirs, f := os.NewFile(uintptr(pair[0]), "sandbox"), os.NewFile(uintptr(pair[1]), "sandbox")
	conn, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		_ = theirs.Close()
		return fmt.Errorf("make a sandbox: %w", err)
	}
	ours, ok := conn.(*net.UnixConn)
	if !ok {
		_, _ = conn.Close(), theirs.Close()
		return errors.New("make a sandbox: the control socket is not a Unix socket")
	}
	r.system.plan, r.system.ours, r.system.theirs = plan, ours, theirs

	cmd.ExtraFiles = append(cmd.ExtraFiles[:plan.Keep:plan.Keep], theirs)
	env := []string{inside.Env + "=" + strconv.Itoa(3+plan.Keep), "GOMAXPROCS=1", "GOTRACEBACK=none"}
	for _, kv := range cmd.Env {
		if strings.HasPrefix(kv, "YAYA_CHILD=") { // by which internal/proc finds what it has started
			env = append(env, kv)
		}
	}
	cmd.Env, cmd.Dir = env, "/"
	cmd.Path, cmd.Args = "/proc/self/exe", []string{"yaya", "__sandbox", plan.Argv[0]}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if !plan.Init { // it ends with its owner by itself, after everything below it
		cmd.SysProcAttr.Pdeathsig = 0
	}
	if g := r.system.group; g != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(g.Fd()) //nolint:gosec // a descriptor
	}
	if plan.Mounts {
		return namespaces(cmd.SysProcAttr, plan)
	}
	return nil
}

// namespaces gives a command namespaces of its own.
func namespaces(sys *syscall.SysProcAttr, plan *inside.Plan) error {
	sys.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	if plan.Init {
		sys.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	}
	if plan.Loopback || plan.Filter.NoInet {
		sys.Cloneflags |= unix.CLONE_NEWNET
	}
	sys.AmbientCaps = helperCaps
	uid, gid := os.Geteuid(), os.Getegid()
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	if uid != 0 {
		return nil
	}
	// Root sees who owns a file, and what root configured may become another user.
	var err error
	if sys.UidMappings, err = sameIDs("/proc/self/uid_map"); err == nil {
		sys.GidMappings, err = sameIDs("/proc/self/gid_map")
	}
	sys.GidMappingsEnableSetgroups = true
	return err
}

// sameIDs maps every id that exists here to itself.
func sameIDs(file string) ([]syscall.SysProcIDMap, error) {
	data, err := os.ReadFile(file) //nolint:forbidigo,gosec // a kernel file
	if err != nil {
		return nil, fmt.Errorf("make a sandbox: %w", err)
	}
	var all []syscall.SysProcIDMap
	for line := range strings.Lines(string(data)) {
		var id, host, size int
		if _, err := fmt.Sscan(line, &id, &host, &size); err != nil {
			return nil, fmt.Errorf("make a sandbox: read %s: %w", file, err)
		}
		all = append(all, syscall.SysProcIDMap{ContainerID: id, HostID: id, Size: size})
	}
	return all, nil
}

// Started waits until the program runs in its sandbox, which pid is the first process
// of. The caller ends that process when it fails.
func (r *Run) Started(pid int) error {
	if r.system.plan == nil {
		return nil
	}
	r.system.pid = pid
	_ = r.system.theirs.Close()
	reply, files, err := r.exchange()
	if err != nil {
		return fmt.Errorf("start %s in a sandbox: %w", r.system.plan.Argv[0], err)
	}
	if reply.Error != "" {
		closeFiles(files)
		if reply.NoStart != 0 {
			return &NotStarted{reply.Error, syscall.Errno(reply.NoStart)}
		}
		return errors.New(reply.Error)
	}
	return r.serve(files, reply.Absent)
}

// maxListeners bounds the listeners that a sandbox hands over in its one message.
const maxListeners = 128

// exchange sends the plans and reads the reply with the listeners.
func (r *Run) exchange() (reply *inside.Reply, files []*os.File, err error) {
	conn := r.system.ours
	if err := conn.SetDeadline(time.Now().Add(startWithin)); err != nil {
		return nil, nil, err
	}
	if r.system.around != nil {
		if err := send(conn, r.system.around); err != nil {
			return nil, nil, err
		}
	}
	if err := send(conn, r.system.plan); err != nil {
		return nil, nil, err
	}
	msg, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(maxListeners*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(msg, rights)
	if err != nil {
		return nil, nil, fmt.Errorf("its first process did not answer: %w", err)
	}
	if files, err = received(rights[:oobn]); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			closeFiles(files)
		}
	}()
	if n < 4 {
		return nil, files, errors.New("its first process ended")
	}
	size := int(binary.BigEndian.Uint32(msg))
	if size > len(msg)-4 {
		return nil, files, errors.New("its first process answered with too much")
	}
	if _, err := io.ReadFull(conn, msg[min(n, 4+size):4+size]); err != nil {
		return nil, files, err
	}
	reply = new(inside.Reply)
	return reply, files, json.Unmarshal(msg[4:4+size], reply)
}

func send(conn *net.UnixConn, plan *inside.Plan) error {
	data, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	if len(data) > inside.MaxPlan {
		return errors.New("the arguments and the environment are too large")
	}
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)) //nolint:gosec // bounded above
	return err
}

func received(oob []byte) ([]*os.File, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// serve serves the proxy, the endpoints and the services of this machine at the
// listeners. absent are the indexes of those that the sandbox lacks.
func (r *Run) serve(files []*os.File, absent []int) error {
	there := make([]entrance, 0, len(r.system.entrances))
	for i, e := range r.system.entrances {
		if !slices.Contains(absent, i) {
			there = append(there, e)
		}
	}
	if len(files) != len(there) {
		closeFiles(files)
		return fmt.Errorf("the sandbox handed %d listeners over, not %d", len(files), len(there))
	}
	var err error
	for i, f := range files {
		if err == nil {
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				l, err = r.system.room.listener(l)
			}
			if err == nil {
				r.add(there[i].serve(l))
			}
		}
		_ = f.Close()
	}
	return err
}

// findEntrances decides on the listeners of a run, the proxy's first.
func (r *Run) findEntrances() error {
	proxied := newProxy(r.policy.Net)
	proxied.listens = r.box.listens
	r.system.room = proxied.room()
	if r.policy.Net.Mode == Hosts {
		r.system.entrances = append(r.system.entrances, entrance{netip.MustParseAddrPort(proxyAddr), false, func(l net.Listener) server { return serveHTTP(l, proxied) }})
		if r.golang != nil && r.golang.modules != "" {
			r.system.entrances = append(r.system.entrances, entrance{netip.MustParseAddrPort(goAddr), false, func(l net.Listener) server { return serveHTTP(l, r.golang) }})
		}
	}
	for _, e := range r.policy.Endpoints {
		at, err := netip.ParseAddrPort(e.Addr)
		if err != nil {
			return fmt.Errorf("endpoint %q: not an address with a port", e.Addr)
		}
		proxied.endpoints = append(proxied.endpoints, at)
		r.system.entrances = append(r.system.entrances, entrance{at, false, func(l net.Listener) server { return serveHTTP(l, e.Handler) }})
	}
	for _, f := range r.policy.Net.forwards() {
		r.system.entrances = append(r.system.entrances, entrance{f.at, f.spare, func(l net.Listener) server { return proxied.serveForward(l, f) }})
	}
	if len(r.system.entrances) > maxListeners {
		return fmt.Errorf("a sandbox has at most %d endpoints", maxListeners)
	}
	return nil
}

// PID returns the id of the program itself, while the process that was started is the
// first of its sandbox; 0 when it has ended.
func (r *Run) PID() int {
	if r.system.plan == nil {
		return 0
	}
	// The thread that started a program ends, and the program becomes the child of
	// another one: a look may miss it once, at that moment, and the next does not.
	for range 3 {
		pid := firstChild(r.system.pid)
		if r.system.around != nil { // that was bubblewrap, which starts ours, which starts the program
			pid = firstChild(firstChild(pid))
		}
		if pid != 0 {
			return pid
		}
	}
	return 0
}

// firstChild is a child of a process, 0 without one.
func firstChild(pid int) int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if pid == 0 || err != nil {
		return 0
	}
	for _, t := range tasks {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name())) //nolint:forbidigo // a kernel file
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(firstWord(string(data))); err == nil {
			return pid
		}
	}
	return 0
}

func firstWord(s string) string {
	words := bufio.NewScanner(strings.NewReader(s))
	words.Split(bufio.ScanWords)
	words.Scan()
	return words.Text()
}

// Keeps reports whether there is a first process, which ends everything in the sandbox.
func (r *Run) Keeps() bool { return r.system.plan != nil }

// End has everything in the sandbox killed: its first process takes the end of the control
// socket for its owner's.
func (r *Run) End() {
	if r.system.ours != nil {
		_ = r.system.ours.CloseWrite() // that process may have ended
	}
}

// Ended ends what is left of the run. It is called once nothing will be started, or
// the first process has ended; more than once does nothing.
func (r *Run) Ended() {
	r.mu.Lock()
	done := r.ended
	r.ended = true
	r.mu.Unlock()
	if done {
		return
	}
	if r.system.ours != nil {
		_ = r.system.ours.Close()
		_ = r.system.theirs.Close() // Started closed it, unless nothing was started
	}
	r.stopServing()
	dissolve(r.system.group)
	if r.system.tmp != "" {
		_ = os.RemoveAll(r.system.tmp) //nolint:forbidigo // made by this run
	}
	_ = closeAll(r.policy)
}
