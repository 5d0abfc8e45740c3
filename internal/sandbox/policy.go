package sandbox

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Policy describes what a program in a sandbox can do. [Profile] returns one to
// start from.
type Policy struct {
	Profile string

	// Read, Write and Protect are files, and folders with all that is in them. The
	// deepest one that covers a file decides. Protect is read-only within Write; a
	// folder above it, up to Write, can then not be renamed.
	Read, Write, Protect []Path
	// Partly are folders like those of Write, of which something is in Protect. Where that
	// cannot be enforced, they are not written.
	Partly []Path
	// OwnParts are paths within yaya's own folders that yaya has put there for the program:
	// the policy may name these, and the program may lie in one. Everything around them
	// stays hidden.
	OwnParts []string
	// Runtimes are files that programs consist of. Hiding takes precedence: a runtime
	// that is hidden, or contains hidden files, is not shown.
	Runtimes []Path
	// Behind, unless it is nil, bounds what is shown because of the program in a strict
	// sandbox: see [Behind].
	Behind []string
	// Hide are more paths that cannot be read, beside those of the profile.
	Hide []string
	// Strict hides everything that is not named, but for the system's programs.
	Strict bool
	// HostWrites lets the program write wherever its user can.
	HostWrites bool
	// Home is the user's home folder. Credentials in it, and in the one that the system
	// knows of the user, are hidden unless HostWrites is set.
	Home string
	// Cache is a folder of the sandbox's own for caches of package managers. Shared
	// ones would let a program change what runs outside the sandbox. "" means no
	// cache.
	Cache string
	// Tmp is a folder that is the program's /tmp, or its TMPDIR where nothing can be
	// mounted; "" is one that is empty and ends with the program.
	Tmp string

	Net       Net
	Endpoints []Endpoint
	Limits    Limits
	// Browser lets the program make user namespaces, of which browsers build a
	// sandbox of their own.
	Browser bool
	// Unix lets the program open sockets of AF_UNIX. Those of the host stay hidden.
	Unix bool
	// Terminal says that the program shares the terminal of this process.
	Terminal bool
	// Told are absolute paths in the program's arguments and environment. Unseen is
	// called, before the program starts, with each that exists and that the sandbox hides;
	// optional. It must not block.
	Told   []string
	Unseen func(name string)
	// Require refuses to start where these are not enforced.
	Require Need

	programs []Path // yaya's own, which cannot be written
}

// NetMode selects the network of a sandbox.
type NetMode int

// Kinds of network, the narrowest first.
const (
	Off      NetMode = iota // none
	Loopback                // a loopback interface of its own
	Hosts                   // that, and a proxy to listed hosts
	Host                    // the host's network
)

func (m NetMode) String() string {
	return [...]string{"off", "loopback", "hosts", "host"}[m]
}

// Net is the network of a sandbox.
type Net struct {
	Mode NetMode
	// Allow are the hosts that the proxy reaches: "example.com" (ports 443 and 80),
	// "*.example.com" (every name below it), and either with ":PORT". An IP address
	// allows that address even if it is private; a name never leads to a private one.
	// "localhost:PORT" and loopback addresses are services of this machine: a sandbox
	// with a network of its own finds them at the same addresses. None of them is yaya.
	Allow []string
	// Ask is called for a host that is not in Allow; optional. It may block.
	Ask func(ctx context.Context, host string, port int) bool
	// Denied is called for each refused connection; optional. It must not block.
	Denied func(Denial)
	// Unreached is called for each allowed connection that failed, such as to a name
	// that cannot be resolved; optional. It must not block.
	Unreached func(host string, port int, why string)
}

// Denial is a connection that a sandbox refused.
type Denial struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	Why  string `json:"why"`
	// Allow is the entry of [Net.Allow] that would have let it through, "" without one.
	Allow string `json:"allow,omitempty"`
}

// Endpoint is served to the program of one sandbox at an address of its loopback
// interface, such as 127.0.0.1:8787.
type Endpoint struct {
	Addr    string
	Handler http.Handler
}

// Limits bound the resources of a program. Zero means no limit.
type Limits struct {
	Memory    int64         // bytes of data of each process, and of each private folder
	Processes int           // of the user in this sandbox; more where those outside cannot be told apart
	Time      time.Duration // until everything is killed
}

// Need is a set of limits that a sandbox can enforce.
type Need uint

// The limits that a sandbox can enforce.
const (
	NeedHidden    Need = 1 << iota // credentials, and yaya's own files
	NeedStrict                     // nothing can be read that is not named
	NeedWrites                     // nothing can be written that is not named
	NeedProtect                    // protected files within what can be written
	NeedProcesses                  // others cannot be traced, and get no signals
	NeedTree                       // nothing outlives the program, or yaya
	NeedNetwork                    // not more network than the policy says
	NeedHosts                      // and the listed hosts, or loopback, are there
	NeedSockets                    // sockets of other programs cannot be reached
	NeedKernel                     // system calls that no program needs are refused
	NeedMemory                     // a process has only so much memory
	NeedTasks                      // there are only so many processes
)

var needNames = []string{"hidden files", "reads", "writes", "protected files", "other processes", "leftover processes", "network", "hosts", "sockets", "system calls", "memory", "number of processes"}

// Names lists the needs of a set.
func (n Need) Names() []string {
	names := []string{}
	for i, name := range needNames {
		if n&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (n Need) String() string { return strings.Join(n.Names(), ", ") }

// Lacking describes the effect if a set is not enforced: a network that cannot be
// limited to hosts is off.
func (n Need) Lacking() string {
	var said []string
	if n&^NeedHosts != 0 {
		said = append(said, (n&^NeedHosts).String()+" not enforced")
	}
	if n&NeedHosts != 0 {
		said = append(said, "the network is off")
	}
	return strings.Join(said, "; ")
}

// Way returns a remedy for a set that is not enforced, apart from other settings, "" if
// none is known.
func (n Need) Way() string {
	if n&NeedTasks == 0 || runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return ""
	}
	return "the kernel does not bound root's processes: start yaya as an ordinary user, or in a control group of its own (a systemd unit with Delegate=yes)"
}

// MarshalJSON writes the names.
func (n Need) MarshalJSON() ([]byte, error) { return json.Marshal(n.Names()) }

// UnmarshalJSON reads the names; those that it does not know are left out.
func (n *Need) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return err
	}
	*n = 0
	for i, name := range needNames {
		if slices.Contains(names, name) {
			*n |= 1 << i
		}
	}
	return nil
}

// Wants returns the limits that a policy asks for.
func (p *Policy) Wants() Need {
	want := NeedHidden | NeedProcesses | NeedTree | NeedKernel
	if p.Strict {
		want |= NeedStrict
	}
	if !p.HostWrites {
		want |= NeedWrites | NeedSockets
	}
	if len(p.Protect) > 0 {
		want |= NeedProtect
	}
	switch p.Net.Mode {
	case Off:
		want |= NeedNetwork
	case Loopback, Hosts:
		want |= NeedNetwork | NeedHosts
	case Host:
	}
	if len(p.Endpoints) > 0 {
		want |= NeedHosts
	}
	if p.Limits.Memory > 0 {
		want |= NeedMemory
	}
	if p.Limits.Processes > 0 {
		want |= NeedTasks
	}
	return want
}

// Enforced describes the parts of its policy that a sandbox enforces.
type Enforced struct {
	Backend string `json:"backend"`
	Profile string `json:"profile"`
	Has     Need   `json:"enforced"`
	// Partly is the part of Has that is enforced incompletely.
	Partly Need `json:"-"`
	// Missing returns the limits of the policy that this machine does not enforce, or
	// enforces in part, in sentences for a person.
	Missing []string `json:"missing,omitempty"`
	// Breaks returns, in such sentences, the features that the policy allows but that
	// do not work here.
	Breaks []string `json:"breaks,omitempty"`
}

func (e *Enforced) miss(what string) {
	if !slices.Contains(e.Missing, what) {
		e.Missing = append(e.Missing, what)
	}
}

func (e *Enforced) partly(n Need, what string) {
	e.Partly |= n & e.Has
	e.miss(what)
}

func (e *Enforced) breaks(what string) { e.Breaks = append(e.Breaks, what) }
