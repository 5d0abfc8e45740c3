// Package sandbox limits programs to the files and hosts that the user agreed to.
//
// A [Policy] lists what a program may read, write and reach; [Profile] returns one of
// a few predefined policies. [Box.Enter] turns it into a [Run], which changes an
// [os/exec.Cmd] before it is started, and reports in [Enforced] the parts of the
// policy that this machine enforces. A policy that requires more is refused. A Run
// fits the field Sandbox of internal/proc's Spec, so that a caller adds one line to
// have a child in a sandbox; this package itself starts nothing but probes.
//
// # Back ends
//
// "namespaces" is Linux with user namespaces: a root built of mounts, PIDs and a
// network of its own. "bwrap" is the same, made by bubblewrap where only that program
// may make namespaces; one more process of ours is around it. "landlock" is Linux
// without: it bounds files, tracing and signals, and can switch the network off.
// "seatbelt" is macOS: sandbox-exec becomes the program, by a profile made of the same
// rules. "off" does nothing, and reports that.
//
// # The process between
//
// The first process of a sandbox is this program itself, executed again (see package
// inside). It stays between the owner and the program: it passes signals on, exits
// with the program's code, or 128 plus the number of the signal that ended it, and
// kills remaining processes when the program has ended or the owner has died.
//
// # Network and identity
//
// Where hosts are listed, the sandbox has a network of its own with nothing but a
// loopback interface. Its first process listens there and hands the listener to the
// owner, which serves a proxy on it: every connection to that listener comes from
// that sandbox's program. [Endpoint] serves anything else the same way. Methods are
// safe for concurrent use.
package sandbox
