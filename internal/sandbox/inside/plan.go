package inside

// Env names the descriptor of the control socket, and makes the program the
// first process of a sandbox instead of what it is otherwise.
const Env = "YAYA_SANDBOX"

// Versions of Landlock from which the kernel bounds something.
const (
	MinLandlock    = 2 // files, and they may be renamed between folders
	LandlockScopes = 6 // signals and abstract sockets
	LandlockUnix   = 9 // sockets at paths
)

// Access is the right that a [Rule] grants.
type Access string

// Accesses of rules.
const (
	Hide    Access = "hide"    // an empty folder or file that cannot be read
	Private Access = "private" // a folder of the sandbox alone, writable: empty, or From
	Read    Access = "read"
	Write   Access = "write"
)

// Rule grants access to a path and everything below it. The deepest rule that
// covers a file decides.
type Rule struct {
	Path   string `json:"path"` // absolute, without symbolic links
	Access Access `json:"access"`
	// Dev and Ino are of the file that was agreed to: another one at the path ends
	// the start. A zero Ino binds nothing.
	Dev uint64 `json:"dev,omitempty"`
	Ino uint64 `json:"ino,omitempty"`
	// Kept makes the folder a mount of its own without another change, so that it
	// cannot be renamed.
	Kept bool `json:"kept,omitempty"`
	// From is the file or folder that is mounted at Path instead of Path itself: absolute, without symbolic
	// links. It is unused with Hide, and without mounts.
	From string `json:"from,omitempty"`
}

// Plan describes the actions of a sandbox's first process before it starts the
// program.
type Plan struct {
	Path string   `json:"path"`
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// DirDev and DirIno identify Dir, like those of a rule.
	DirDev uint64 `json:"dir_dev,omitempty"`
	DirIno uint64 `json:"dir_ino,omitempty"`
	// Keep is the number of descriptors from 3 on that the program inherits.
	Keep int `json:"keep,omitempty"`
	// Terminal says that signals of the terminal reach the program by themselves.
	Terminal bool `json:"terminal,omitempty"`
	// Probe ends the process when everything but the program has worked.
	Probe bool `json:"probe,omitempty"`

	// Around starts Path as a program that makes namespaces and starts this one in
	// them, with a plan of its own.
	Around bool `json:"around,omitempty"`
	// Mounted says that such a program has built the root.
	Mounted bool `json:"mounted,omitempty"`
	// Mounts builds a root of its own: there is a mount namespace.
	Mounts bool `json:"mounts,omitempty"`
	// Init says that the process is the first of a PID namespace.
	Init bool `json:"init,omitempty"`
	// Strict begins with an empty root instead of the host's.
	Strict bool `json:"strict,omitempty"`
	// Links are symbolic links at the top of an empty root: name and target.
	Links [][2]string `json:"links,omitempty"`
	// Aliases are symbolic links of the host by which granted files are called, where an
	// empty root has nothing at their place: name and target.
	Aliases [][2]string `json:"aliases,omitempty"`
	// HostWrites leaves the host's root writable.
	HostWrites bool `json:"host_writes,omitempty"`
	// Own gives the sandbox its own /proc and /dev.
	Own   bool   `json:"own,omitempty"`
	Rules []Rule `json:"rules"` // shallow ones first
	Tmp   int64  `json:"tmp"`   // bytes of a private folder, 0 for the kernel's default

	Loopback bool   `json:"loopback,omitempty"` // there is a network namespace: bring lo up
	Listen   []Addr `json:"listen,omitempty"`   // where to listen, handed over in this order

	Landlock bool   `json:"landlock,omitempty"` // the rules are Landlock's alone to enforce
	Writes   bool   `json:"writes,omitempty"`   // Landlock bounds writes, too
	Scope    bool   `json:"scope,omitempty"`    // signals stay inside
	Abstract bool   `json:"abstract,omitempty"` // and abstract sockets do
	Caps     []uint `json:"caps,omitempty"`     // capabilities to keep

	Filter Filter `json:"filter"`
	Data   uint64 `json:"data,omitempty"`      // RLIMIT_DATA, bytes a process
	Tasks  uint64 `json:"processes,omitempty"` // RLIMIT_NPROC, without the threads of the keeper
	Time   int64  `json:"time,omitempty"`      // nanoseconds until everything is killed

	foreign []uint64 // mounts of the host that descriptors of the program lead to
}

// Addr is an address to listen at. It is not of net/netip, which takes time to
// initialise.
type Addr struct {
	IP   []byte `json:"ip"` // 4 or 16 bytes
	Port uint16 `json:"port"`
	// Spare may be left out where the address does not exist.
	Spare bool `json:"spare,omitempty"`
}

// Filter says what the filter of system calls lets through beyond the usual.
type Filter struct {
	Nested bool `json:"nested,omitempty"`  // user namespaces, which browsers make
	Unix   bool `json:"unix,omitempty"`    // sockets of AF_UNIX
	NoInet bool `json:"no_inet,omitempty"` // no sockets of AF_INET and AF_INET6
	// Shared says that the ids of the host's processes can be named: nothing of them is
	// changed.
	Shared bool `json:"shared,omitempty"`
	// Files says that mounts do not bound who changes what is said of files, such as their
	// modes, owners and times. Landlock has no right for that: the keeper changes it, of
	// the files that can be written.
	Files bool `json:"files,omitempty"`
	// Bounded says that not all that the user can write can be written: no file becomes one
	// that runs as its owner.
	Bounded bool `json:"bounded,omitempty"`

	refuse  bool // nobody answers for the keeper
	root    bool // the user is root
	foreign bool // Files is set for what the program inherits: mounts bound all else
}

// Reply is the answer to a [Plan]. The listeners come with it.
type Reply struct {
	Error    string `json:"error,omitempty"`
	NoStart  int    `json:"no_start,omitempty"`  // errno, if all is set up and the program alone does not start
	Landlock int    `json:"landlock"`            // its version, 0 without
	HostProc string `json:"host_proc,omitempty"` // why /proc is that of the host
	NoAnswer bool   `json:"no_answer,omitempty"` // another filter has a listener: the keeper answers no calls
	Absent   []int  `json:"absent,omitempty"`    // which of the plan's spare addresses are not there
}
