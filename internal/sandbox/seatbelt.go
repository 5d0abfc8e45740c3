package sandbox

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// seatbeltBase allows what a program on macOS needs and what reveals nothing: the rest
// is denied.
const seatbeltBase = `(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow ipc-posix-shm)
(allow pseudo-tty)
(allow user-preference-read)
(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.logd")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.PowerManagement.control"))
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow file-map-executable)
(allow file-read* file-write* file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom")
  (literal "/dev/tty") (literal "/dev/ptmx") (literal "/dev/dtracehelper") (subpath "/dev/fd"))
(allow file-read* file-write* file-ioctl
  (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
`

// seatbeltGuarded begins with everything allowed.
const seatbeltGuarded = `(version 1)
(allow default)
(deny signal)
(allow signal (target self) (target same-sandbox))
(deny mach-priv-task-port)
`

// seatbelt returns a profile of sandbox-exec for a plan, and its parameters. Paths are
// parameters, so that no path can be read as a part of the profile. port is of the
// proxy, 0 without one. In a profile the last rule that matches decides.
// Nobody reaches what yaya listens on: a peer in a sandbox looks like its user there.
func seatbelt(plan *inside.Plan, p *Policy, port int, listens []string) (text string, params []string) {
	var b strings.Builder
	name := map[string]string{}
	path := func(kind, at string) string {
		if name[at] == "" {
			name[at] = fmt.Sprintf("P%d", len(name))
			params = append(params, "-D", name[at]+"="+at)
		}
		return fmt.Sprintf("(%s (param %q))", kind, name[at])
	}
	if p.HostWrites {
		b.WriteString(seatbeltGuarded)
	} else {
		b.WriteString(seatbeltBase)
		if !p.Strict {
			b.WriteString("(allow file-read*)\n")
		}
	}
	for _, r := range plan.Rules {
		at := path("subpath", r.Path)
		switch r.Access {
		case inside.Read:
			fmt.Fprintf(&b, "(allow file-read* %s)\n(deny file-write* %s)\n", at, at)
		case inside.Write:
			fmt.Fprintf(&b, "(allow file-read* file-write* %s)\n", at)
		case inside.Hide, inside.Private:
			fmt.Fprintf(&b, "(deny file-read* file-write* %s)\n", at)
		}
	}
	// Rules are about names: a folder above one must keep its own.
	for _, dir := range seatbeltKept(plan) {
		fmt.Fprintf(&b, "(deny file-write-unlink %s)\n", path("literal", dir))
	}
	switch {
	case p.Net.Mode == Host && !p.HostWrites:
		b.WriteString("(allow network*)\n(allow system-socket)\n")
	case port > 0:
		fmt.Fprintf(&b, "(allow network-outbound (remote ip \"localhost:%d\"))\n(allow system-socket)\n", port)
	}
	for _, f := range p.Net.forwards() { // the host's own loopback interface
		if !itsOwn(f.at, listens) {
			fmt.Fprintf(&b, "(allow network-outbound (remote ip \"localhost:%d\"))\n", f.at.Port())
		}
	}
	for _, addr := range listens {
		if at, err := netip.ParseAddrPort(addr); err == nil && (p.Net.Mode == Host || len(p.Net.forwards()) > 0) {
			fmt.Fprintf(&b, "(deny network-outbound (remote ip \"localhost:%d\"))\n", at.Port())
		}
	}
	for _, r := range plan.Rules { // sockets at paths
		switch {
		case r.Access == inside.Hide:
			fmt.Fprintf(&b, "(deny network-outbound %s)\n", path("subpath", r.Path))
		case r.Access == inside.Write && !p.HostWrites && p.Unix:
			fmt.Fprintf(&b, "(allow network-bind %[1]s)\n(allow network-outbound %[1]s)\n", path("subpath", r.Path))
		}
	}
	return b.String(), params
}

// seatbeltKept are the folders above read-only paths that could be renamed.
func seatbeltKept(plan *inside.Plan) []string {
	var kept []string
	for _, r := range plan.Rules {
		if r.Kept && !slices.Contains(kept, r.Path) {
			kept = append(kept, r.Path)
		}
		if r.Access == inside.Write && !r.Kept {
			continue
		}
		for dir := filepath.Dir(r.Path); dir != "/"; dir = filepath.Dir(dir) {
			if inside.Effective(plan.Rules, dir, plan.Otherwise()) == inside.Write && !slices.Contains(kept, dir) {
				kept = append(kept, dir)
			}
		}
	}
	slices.Sort(kept)
	return kept
}

// seatbelt describes the gaps on macOS.
func (e *Enforced) seatbelt(p *Policy) {
	e.miss("this back end was tested by the text of its profiles, not on a Mac")
	if p.Net.Mode == Loopback || p.Net.Mode == Off && len(p.Endpoints) > 0 {
		e.breaks("the network is off: macOS has no loopback interface of the sandbox's own")
	}
	if p.Net.Mode == Loopback || len(p.Endpoints) > 0 {
		e.Has &^= NeedHosts
	}
	if len(p.Endpoints) > 0 {
		e.breaks("yaya's endpoints are not there: they need a network of the sandbox's own")
	}
	if p.HostWrites {
		e.Has &^= NeedProcesses | NeedKernel
		e.miss("other programs of your user can be looked at, and asked to start something")
		e.miss("what such a program does is done as you, at yaya's port, too: the profile refuses the port to programs in the sandbox alone, by its number at their start")
	} else if p.Unix {
		e.Has &^= NeedSockets
		e.miss("sockets of other programs in folders that can be written can be reached")
	}
	e.miss("what outlives the program is not ended by the sandbox")
	if p.Limits.Memory > 0 || p.Limits.Processes > 0 {
		e.miss("memory and the number of processes are not bounded")
	}
}
