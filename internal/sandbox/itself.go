package sandbox

import (
	"fmt"
	"net"
	"net/netip"
)

// itsOwn reports whether an address is one that yaya listens on. Connections that are
// passed on come from yaya's own process: the server there would take the program for
// yaya, or for its user.
func itsOwn(at netip.AddrPort, listens []string) bool {
	addr := at.Addr().Unmap().WithZone("")
	for _, text := range listens {
		l, err := netip.ParseAddrPort(text)
		if err != nil || l.Port() != at.Port() {
			continue
		}
		own := l.Addr().Unmap().WithZone("")
		if own == addr || addr.IsUnspecified() || own.IsUnspecified() && ofThisMachine(addr) {
			return true
		}
	}
	return false
}

// ofThisMachine reports whether an address leads to this machine itself, as far as that
// is known.
func ofThisMachine(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range all {
		if n, err := netip.ParsePrefix(a.String()); err == nil && n.Addr().Unmap().WithZone("") == addr {
			return true
		}
	}
	return false
}

// isYaya returns the reason why a connection to yaya from a sandbox's network is refused.
func isYaya(at netip.AddrPort) string {
	return fmt.Sprintf(`yaya itself listens at %s, and takes no program in a sandbox for its user; a server calls tools of other servers with "mcp": true in its "sandbox"`, at)
}

// CheckHosts reports why entries cannot stand in [Net.Allow] of a yaya that listens at
// these addresses.
func CheckHosts(entries, listens []string) error {
	for _, entry := range entries {
		r, err := parseHost(entry)
		if err != nil {
			return err
		}
		for _, at := range r.addresses() {
			if itsOwn(at, listens) {
				return fmt.Errorf("host %q: %s", entry, isYaya(at))
			}
		}
	}
	return nil
}

// addresses are those that a rule names, with their ports.
func (r hostRule) addresses() (all []netip.AddrPort) {
	addrs := []netip.Addr{r.addr}
	switch {
	case r.below:
		return nil
	case r.name == localhost:
		addrs = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	case !r.addr.IsValid():
		return nil
	}
	ports := []int{r.port}
	if r.port == 0 {
		ports = []int{443, 80}
	}
	for _, addr := range addrs {
		for _, port := range ports {
			all = append(all, netip.AddrPortFrom(addr, uint16(port))) //nolint:gosec // parseHost bounds it
		}
	}
	return all
}
