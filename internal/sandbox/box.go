package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/mounts"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// Back ends.
const (
	Namespaces = "namespaces"
	Bwrap      = "bwrap"
	Landlock   = "landlock"
	Seatbelt   = "seatbelt"
	None       = "off"
)

// Backends are the names of this system's back ends, the best first.
func Backends() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{Seatbelt, None}
	case "windows":
		return []string{None}
	}
	return []string{Namespaces, Bwrap, Landlock, None}
}

// Box creates sandboxes. Its fields must not change once it is in use.
type Box struct {
	// Own are yaya's own folders and sockets, hidden in every sandbox. A policy
	// cannot name them, or anything in them but its Cache.
	Own []string
	// Readable are yaya's own files that are public but that no sandbox may change.
	// Where a back end cannot make a file readable and read-only, they are hidden.
	Readable []string
	// Program is yaya's own program, read-only in every sandbox; "" for this one.
	Program string
	// Yaya is the id of the yaya that serves this user, if that is not this process: 0 for
	// none. No sandbox changes it through files in /proc.
	Yaya int
	// Listens returns the addresses that yaya listens on now, which no sandbox is passed
	// on to; nil for none. On macOS, where yaya cannot tell a program from its user, the
	// profile of a program refuses those of its start.
	Listens func() []string
	// Backend is one of [Backends], or "" for the best that works.
	Backend string

	// Set are the settings that selected the back end, for remedies in errors; nil
	// without settings.
	Set *Settings
}

// Run is one program in a sandbox, from before it is started until it has ended.
type Run struct {
	Enforced Enforced

	box        *Box
	policy     Policy
	mounts     *mounts.Table // of this process; nil if they are not known
	owned      []string      // by [Run.own]
	dir        string        // that the program starts in, once it is known
	hidden     []string      // by [Run.secrets], for the folder hiddenFrom
	hiddenFrom string
	landlock   int // version
	system     runSystem
	trial      bool    // of a back end, without a program: what this machine has at the moment does not matter
	golang     *goHost // of a program that can write modules of its own, else nil
	// cargoHome is the home of Cargo where the host has none.
	cargoHome string
	mu        sync.Mutex
	served    []server
	ended     bool
}

// server is at one listener of a sandbox. close ends it and waits for that.
type server interface{ close() }

// listens are the addresses that yaya listens on now.
func (b *Box) listens() []string {
	if b.Listens == nil {
		return nil
	}
	return b.Listens()
}

// Enter decides how to enforce a policy here. It takes ownership of the policy's
// paths, and closes them when the run ends or fails.
func (b *Box) Enter(p Policy) (*Run, error) {
	r, err := b.enter(p)
	if err != nil {
		return nil, errors.Join(err, closeAll(p))
	}
	return r, nil
}

func closeAll(p Policy) error {
	return errors.Join(Close(p.Read), Close(p.Write), Close(p.Partly), Close(p.Protect), Close(p.Runtimes), Close(p.programs))
}

func (b *Box) enter(p Policy) (*Run, error) {
	if err := errors.Join(p.Net.check(), p.checkEndpoints()); err != nil {
		return nil, err
	}
	if err := CheckHosts(p.Net.Allow, b.listens()); err != nil && p.Net.Mode == Hosts {
		return nil, err
	}
	table, unknown := lookAtMounts()
	r := &Run{box: b, policy: p, mounts: table}
	for _, path := range p.Write {
		if path.name == "/" || slices.Contains(table.Same(path.name), "/") {
			return nil, isWhole(path.name)
		}
	}
	for _, path := range slices.Concat(p.Read, p.Write, p.Partly) {
		if err := CheckPath(path.name); err != nil {
			return nil, err
		}
		for _, own := range r.own() {
			if inside.Covers(own, path.name) && !Within(p.OwnParts, path.name) {
				return nil, fmt.Errorf("%s cannot be given to a sandbox: it belongs to yaya itself", path.name)
			}
		}
	}
	e, version, err := b.decide(&p, unknown)
	if err != nil {
		return nil, err
	}
	if e.Backend == Seatbelt && p.Net.Mode == Host && len(b.listens()) == 0 {
		e.miss("yaya's port can be reached, and yaya takes the program for you: it is not known here")
	}
	if program := cmp.Or(b.Program, itself()); e.Backend != None && program != "" {
		if at, err := Open(program); err == nil { // else it was removed
			r.policy.programs = []Path{at}
		}
	}
	r.Enforced, r.landlock = e, version
	return r, nil
}

// decide returns the parts of a policy that this machine enforces, and with which version
// of Landlock. It refuses a policy that requires more than the back end supports. unknown
// says why the mounts are not known, nil if they are.
func (b *Box) decide(p *Policy, unknown error) (Enforced, int, error) {
	report := thisMachine.choice(b.Backend)
	if unknown != nil {
		report.Mounts = unknown.Error()
	}
	set := cmp.Or(b.Set, &Settings{Mode: Prefer, Backend: cmp.Or(b.Backend, "auto")}) // they may be the reason
	backend, err := b.choose(report)
	if err != nil {
		return Enforced{}, 0, fmt.Errorf("%w; run: %s", err, reset("sandbox.backend", "auto", set.BackendFrom))
	}
	e := decide(backend, p, report)
	if lacks := p.Require &^ e.Has; lacks != 0 {
		refused := &RefusedError{Backend: backend, Lacks: lacks, Fix: standing(Probe(), *set).Fix}
		if set.Mode == Require {
			refused.Prefer = set.SetMode(Prefer)
		}
		return e, 0, refused
	}
	return e, report.Landlock, nil
}

// itself returns the program of this process.
var itself = sync.OnceValue(func() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	return name
})

// RefusedError reports that a policy requires limits that are not enforced here.
type RefusedError struct {
	Backend string
	Lacks   Need
	Fix     string
	// Prefer is the command that makes the mode [Prefer], "" unless it is [Require].
	Prefer string
}

func (e *RefusedError) Error() string {
	var cannot []string
	if bounds := e.Lacks &^ NeedHosts; bounds != 0 {
		cannot = append(cannot, fmt.Sprintf("cannot enforce %s here", bounds))
	}
	if e.Lacks&NeedHosts != 0 {
		cannot = append(cannot, "cannot reach hosts here, because its network is off")
	}
	text := fmt.Sprintf("the sandbox %s (back end %s)", strings.Join(cannot, ", and "), e.Backend)
	switch {
	case e.Fix != "":
		text += "; run: " + e.Fix
	case e.Lacks.Way() != "":
		text += ": " + e.Lacks.Way()
	case e.Backend == None:
		text += "; that needs user namespaces, or Landlock of Linux 5.19 or later, which this system refuses"
	}
	text += " (yaya sandbox says more)"
	if e.Prefer != "" {
		text += "; the setting sandbox.mode is require, so nothing runs with less: " + e.Prefer
	}
	return text
}

// choose returns the back end to use.
func (b *Box) choose(r Report) (string, error) {
	if b.Backend == "" || b.Backend == "auto" {
		return r.Best, nil
	}
	for _, s := range r.Backends {
		if s.Name != b.Backend {
			continue
		}
		if !s.Works {
			return "", fmt.Errorf("the sandbox back end %q does not work here: %s", s.Name, s.Why)
		}
		return s.Name, nil
	}
	return "", fmt.Errorf("there is no sandbox back end %q here; use one of auto, %s", b.Backend, strings.Join(Backends(), ", "))
}

// CheckBackend returns an error if a back end, or "auto", cannot be the setting
// because no program would start. It tries that back end, unless it was tried before.
func CheckBackend(name string) error {
	_, err := (&Box{Backend: name}).choose(thisMachine.choice(name))
	return err
}

// own are yaya's folders with links followed, as far as they exist.
func (b *Box) own() []string { return reals(b.Own) }

func reals(names []string) []string {
	var all []string
	seen := resolved{}
	for _, name := range names {
		all = append(all, seen.real(name))
	}
	return all
}

// resolved remembers where paths lead: those of credentials share a few folders, and most of
// them are not there.
type resolved map[string]string

// real is [real] for clean paths.
func (r resolved) real(name string) string {
	if to, ok := r[name]; ok {
		return to
	}
	to := name
	if dir := filepath.Dir(name); dir != name {
		to = filepath.Join(r.real(dir), filepath.Base(name))
		if info, err := os.Lstat(to); err == nil && info.Mode()&os.ModeSymlink != 0 { //nolint:gosec // it is looked at, no more
			to = real(to)
		}
	}
	r[name] = to
	return to
}

// real follows the links of a path as far as it exists.
func real(name string) string {
	if to, err := filepath.EvalSymlinks(name); err == nil {
		return to
	}
	dir := filepath.Dir(name)
	if dir == name {
		return name
	}
	return filepath.Join(real(dir), filepath.Base(name))
}

// decide returns the parts of a policy that a back end enforces.
func decide(backend string, p *Policy, r Report) Enforced {
	e := decideKnown(backend, p, r)
	e.unknownMounts(r.Mounts)
	return e
}

// decideKnown is decide where the mounts are known.
func decideKnown(backend string, p *Policy, r Report) Enforced {
	e := Enforced{Backend: backend, Profile: p.Profile}
	want := p.Wants()
	switch backend {
	case Namespaces, Bwrap:
		e.Has = want
		if backend == Bwrap && p.HostWrites && os.Geteuid() == 0 {
			e.breaks("files of other users are nobody's: bubblewrap maps one user")
		}
		if low := slices.ContainsFunc(p.Net.forwards(), func(f forward) bool { return f.at.Port() < lowPorts }); low && backend == Bwrap && os.Geteuid() != 0 {
			e.breaks("services of this machine at ports below 1024 that are allowed cannot be reached: bubblewrap leaves no right to listen there")
		}
		if p.HostWrites && r.Landlock < inside.LandlockScopes { // it shares the host's processes
			e.signals(r.Landlock)
		}
		if p.HostWrites {
			e.breaks("a file cannot be renamed from one of the folders above yaya's own (such as .config and .cache) to another: programs that do not copy instead fail")
		}
		if r.HostProc != "" && !p.HostWrites {
			e.partly(NeedProcesses, "other processes can be listed: /proc is the host's, read-only: "+r.HostProc)
		}
	case Landlock:
		e.Has = want &^ (NeedHosts | NeedProtect)
		e.landlock(p, r.Landlock)
		if r.Changes != "" {
			e.breaks("modes, owners and times of files cannot be changed: " + r.Changes)
		}
	case Seatbelt:
		e.Has = want &^ (NeedTree | NeedMemory | NeedTasks)
		e.seatbelt(p)
		return e
	default:
		e.miss("nothing is enforced: the program runs with all rights of your user")
		return e
	}
	if r.Group != "" || p.HostWrites {
		e.perProcess(want, r.Group)
	}
	return e
}

// perProcess describes the gaps without a separate control group of the sandbox.
func (e *Enforced) perProcess(want Need, why string) {
	if why == "" {
		why = "it could leave its control group"
	}
	if want&NeedMemory != 0 {
		e.partly(NeedMemory, "memory is bounded for each process, not for all of them together: "+why)
	}
	if want&NeedTasks != 0 && os.Geteuid() == 0 {
		e.Has &^= NeedTasks
		e.miss("the number of processes is not bounded: the kernel exempts root, and " + why + "; start yaya as an ordinary user, or in a control group of its own (a systemd unit with Delegate=yes)")
	} else if want&NeedTasks != 0 && e.Backend == Landlock {
		e.partly(NeedTasks, "the number of processes is bounded together with that of your programs outside the sandbox, so that there can be more of them: "+why)
	}
}

// signals describes the gaps where Landlock does not bound signals.
func (e *Enforced) signals(version int) {
	e.Has &^= NeedProcesses | NeedTree
	e.miss(fmt.Sprintf("other programs of your user, and the process that ends what is left over, can be signaled: Landlock is at version %d, and %d bounds signals (Linux 6.12)", version, inside.LandlockScopes))
}

// landlock describes the gaps of Landlock alone, and the features that do not work
// with it.
func (e *Enforced) landlock(p *Policy, version int) {
	if p.Net.Mode == Hosts || p.Net.Mode == Loopback {
		e.breaks("the network is off: Landlock knows ports, not hosts, and has no loopback interface of its own")
	}
	if len(p.Net.forwards()) > 0 {
		e.breaks("services of this machine that are allowed cannot be reached: they need a network of the sandbox's own")
	}
	if len(p.Endpoints) > 0 {
		e.breaks("yaya's endpoints are not there: they need a network of the sandbox's own")
	}
	if len(p.Protect) > 0 {
		e.miss("protected files within a writable folder can be written")
	}
	if version < inside.LandlockScopes {
		e.signals(version)
	}
	if p.HostWrites {
		e.partly(NeedHidden, "yaya's own program, where you can write it, and the caches of sandboxes can be changed, and the names in hidden folders can be listed")
		e.breaks("in the folders above what is hidden, such as your home folder, .config and .cache, nothing can be made, renamed or removed, and what comes into them after the start is not seen until the program is started again; the folders beside work")
		e.breaks("nothing can be written in /proc and /sys: browsers make no sandbox of their own")
		return
	}
	e.partly(NeedProcesses, "other processes can be listed")
	e.breaks("/tmp and /dev/shm are not there: TMPDIR names a folder of its own; and no terminals can be made (pty)")
	e.breaks("extended attributes and flags of files cannot be set, and memory, semaphores and messages of System V and queues of POSIX are not there")
	if version < inside.LandlockUnix && p.Unix {
		e.breaks(fmt.Sprintf("sockets of AF_UNIX cannot be opened: Landlock is at version %d, and %d tells those of the host from others", version, inside.LandlockUnix))
	}
}

// NotStarted is the error about a program that does not start in a sandbox, which itself
// does. It wraps why.
type NotStarted struct {
	text string
	err  error
}

func (e *NotStarted) Error() string { return e.text }
func (e *NotStarted) Unwrap() error { return e.err }
