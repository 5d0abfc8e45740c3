package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/systemd"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// A restart replaces the program of this process and keeps the process: its id, its terminal,
// and whoever waits for it (a service manager, a container, a shell) notice nothing. These
// descriptors go along: the listening sockets, whose backlog keeps connections meanwhile; the
// lock of the data directory, which nobody else gets; a file with what clients rely on; and the
// program that ran before, for the case that the new one cannot start.

const (
	handoverEnv  = "YAYA_HANDOVER" // descriptor of the note
	maxNote      = 256 << 20       // bytes
	acmeSocket   = "acme-http"
	ownProgram   = "/proc/self/exe"
	noteProtocol = 1
)

// note is the message of a process to its successor.
type note struct {
	Protocol int                 `json:"protocol"`
	PID      int                 `json:"pid"`
	ID       string              `json:"id"` // of the restart
	Version  string              `json:"version"`
	Began    time.Time           `json:"began"`
	Args     []string            `json:"args"` // of the program before
	Sockets  map[string]int      `json:"sockets"`
	Conns    []int               `json:"conns,omitempty"`
	Lock     int                 `json:"lock"`
	Program  int                 `json:"program,omitempty"`  // 0 if it cannot be run again
	Failed   string              `json:"failed,omitempty"`   // why the program before this one gave up
	Drained  bool                `json:"drained"`            // no call was cut off
	Terminal bool                `json:"terminal,omitempty"` // yaya ends when its terminal is closed
	MCP      downstream.Handover `json:"mcp"`
}

// Inherited holds the descriptors that a process got at its start: from a service manager,
// from the program that ran in it before, or from nobody.
type Inherited struct {
	note    *note // nil without a program before
	sockets []systemd.Socket
	conns   []*os.File // of clients
	lock    *os.File
	program *os.File
	kept    bool // another program gets it
}

// Inherit takes over what this process was started with. It is called once, and the caller
// hands it to [Serve], which closes it.
func Inherit() (_ *Inherited, err error) {
	in := new(Inherited)
	defer func() {
		if err != nil {
			err = errors.Join(err, in.close())
		}
	}()
	if in.sockets, err = systemd.Sockets(); err != nil {
		return nil, err
	}
	fd := os.Getenv(handoverEnv)
	if err := os.Unsetenv(handoverEnv); err != nil {
		return nil, err
	}
	if fd == "" {
		return in, nil
	}
	n, err := readNote(fd)
	if err != nil {
		return nil, fmt.Errorf("restart: %s: %w", handoverEnv, err)
	}
	in.note = n
	for name, fd := range n.Sockets {
		in.sockets = append(in.sockets, systemd.Socket{Name: name, File: inherited(fd, name)})
	}
	for _, fd := range n.Conns {
		in.conns = append(in.conns, inherited(fd, "connection"))
	}
	in.lock, in.program = inherited(n.Lock, "lock"), inherited(n.Program, "program")
	if in.lock == nil {
		return nil, errors.New("restart: the lock of the data directory is missing")
	}
	return in, nil
}

func readNote(fd string) (*note, error) {
	number, err := strconv.Atoi(fd)
	if err != nil || number <= 2 {
		return nil, fmt.Errorf("%q is not a descriptor", fd)
	}
	f := inherited(number, "handover")
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	n := new(note)
	if err := json.NewDecoder(io.LimitReader(f, maxNote)).Decode(n); err != nil {
		return nil, err
	}
	switch {
	case n.Protocol != noteProtocol:
		return nil, fmt.Errorf("version %d of the handover is unknown: stop yaya and start it", n.Protocol)
	case n.PID != os.Getpid():
		return nil, fmt.Errorf("the handover is for process %d", n.PID)
	}
	return n, nil
}

// Restarted reports whether a program ran in this process before.
func (in *Inherited) Restarted() bool { return in != nil && in.note != nil }

// Terminal reports whether yaya was started in a terminal, before a restart, whose end ends it.
func (in *Inherited) Terminal() bool { return in.Restarted() && in.note.Terminal }

// passed makes listeners of the sockets.
func (in *Inherited) passed() (*systemd.Passed, error) {
	if in == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	return systemd.Open(in.sockets, gateway.MainSocket, gateway.LocalSocket, gateway.UnixSocket, acmeSocket)
}

// clientConns returns the connections of clients that are there.
func (in *Inherited) clientConns() []*os.File {
	if in == nil {
		return nil
	}
	return in.conns
}

// lockFile returns the lock that this process already has, nil for none.
func (in *Inherited) lockFile() *os.File {
	if in == nil {
		return nil
	}
	return in.lock
}

// clients returns what clients rely on.
func (in *Inherited) clients() downstream.Handover {
	if !in.Restarted() {
		return downstream.Handover{}
	}
	return in.note.MCP
}

// close closes the descriptors, unless another program gets them: whoever has taken one has a
// descriptor of its own.
func (in *Inherited) close() error {
	if in == nil || in.kept {
		return nil
	}
	var errs []error
	for _, s := range in.sockets {
		errs = append(errs, s.Close())
	}
	for _, f := range append(in.conns, in.lock, in.program) {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	in.sockets, in.conns, in.lock, in.program = nil, nil, nil, nil
	return errors.Join(errs...)
}

// before returns the program that ran before, to go on after this one has failed; nil if there
// is none, or if it is the same: it would fail in the same way.
func (in *Inherited) before(why error) *Successor {
	if !in.Restarted() || in.program == nil || in.note.Failed != "" {
		return nil
	}
	was, err1 := in.program.Stat()
	self, err2 := os.Executable()
	if err1 != nil || err2 != nil {
		return nil
	}
	if is, err := os.Stat(self); err != nil || os.SameFile(was, is) {
		return nil
	}
	in.kept = true
	n := *in.note
	n.Failed, n.Program = why.Error(), 0
	return &Successor{path: fmt.Sprintf("/proc/self/fd/%d", in.program.Fd()), args: n.Args, note: n, sockets: in.sockets, conns: in.conns, lock: in.lock, program: in.program}
}

// Successor is the program that goes on in this process.
type Successor struct {
	path    string
	args    []string // the first is its name
	note    note
	sockets []systemd.Socket
	conns   []*os.File
	lock    *os.File
	program *os.File // the one of this process, nil if it cannot be run again
	file    *os.File // for the note
}

// Exec runs the successor in place of this program; terminal is what [Inherited.Terminal] says
// there. It returns only with an error. SIGHUP is ignored from then on until the successor
// handles it: it reads every file anyway, and the signal would end a program without a handler.
func (s *Successor) Exec(terminal bool) error {
	s.note.Terminal = terminal
	signal.Ignore(syscall.SIGHUP)
	err := s.exec(s.path)
	if s.program == nil || strings.HasPrefix(s.path, "/proc/") {
		return fmt.Errorf("restart: run %s: %w", s.path, err)
	}
	// The program that was checked is gone since: this one goes on.
	s.note.Failed = fmt.Sprintf("run %s: %v", s.path, err)
	return errors.Join(err, s.exec(fmt.Sprintf("/proc/self/fd/%d", s.program.Fd())))
}

func (s *Successor) exec(path string) error {
	n := s.note
	n.Protocol, n.PID, n.Sockets, n.Program = noteProtocol, os.Getpid(), map[string]int{}, 0
	keep := []*os.File{s.lock}
	for _, x := range s.sockets {
		n.Sockets[x.Name] = int(x.File.Fd()) //nolint:gosec // a descriptor fits
		keep = append(keep, x.File)
	}
	n.Conns = nil
	for _, f := range s.conns {
		n.Conns = append(n.Conns, int(f.Fd())) //nolint:gosec // a descriptor fits
		keep = append(keep, f)
	}
	n.Lock = int(s.lock.Fd()) //nolint:gosec // a descriptor fits
	if s.program != nil {
		keep = append(keep, s.program)
		if n.Failed == "" {
			n.Program = int(s.program.Fd()) //nolint:gosec // a descriptor fits
		}
	}
	file, err := s.write(n)
	if err != nil {
		return err
	}
	keep = append(keep, file)
	for _, f := range keep {
		if err := inheritable(f); err != nil {
			return err
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, handoverEnv+"=") })
	env = append(env, handoverEnv+"="+strconv.Itoa(int(file.Fd()))) //nolint:gosec // a descriptor fits
	err = replaceProcess(path, s.args, env)
	runtime.KeepAlive(keep)
	return err
}

// write writes the note. If its file takes no more, what clients rely on is left out: then they
// begin new sessions.
func (s *Successor) write(n note) (*os.File, error) {
	if s.file != nil {
		err := s.file.Truncate(0)
		if err == nil {
			_, err = s.file.Seek(0, io.SeekStart)
		}
		if err == nil {
			err = json.NewEncoder(s.file).Encode(n)
		}
		if err == nil {
			return s.file, nil
		}
	}
	if s.file == nil || len(n.MCP.Sessions) == 0 {
		f, err := os.CreateTemp("", "yaya-restart-*")
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.Remove(f.Name()), json.NewEncoder(f).Encode(n)); err != nil { //nolint:forbidigo // the file that has just been made
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	n.MCP, s.file = downstream.Handover{}, nil
	return s.write(n)
}

// startedAs is the path of the program of a restart: the one that this process was started by,
// so that an update that replaces the file, or the link to it, takes effect.
func startedAs() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the path of yaya: %w", err)
	}
	named := os.Args[0]
	if !strings.ContainsRune(named, '/') {
		if found, err := exec.LookPath(named); err == nil {
			named = found
		}
	}
	if abs, err := filepath.Abs(named); err == nil && sameFile(abs, self) {
		return abs, nil
	}
	return self, nil
}
