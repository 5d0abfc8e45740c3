package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/netaddr"
)

// localhost is the name of both loopback addresses that every machine has.
const localhost = "localhost"

// hostRule is one entry of [Net.Allow].
type hostRule struct {
	name  string // lower case; of a pattern, what follows the "*"
	below bool   // names below name, which begins with a dot
	addr  netip.Addr
	port  int // 0 for 443 and 80
}

// parseHost reads an entry of a list of hosts.
func parseHost(entry string) (hostRule, error) {
	bad := func(why string) (hostRule, error) {
		return hostRule{}, fmt.Errorf("host %q: %s; write a name such as example.com, *.example.com or example.com:8443", entry, why)
	}
	if strings.Contains(entry, "/") {
		return hostRule{}, notHost(entry)
	}
	r := hostRule{name: strings.ToLower(strings.TrimSuffix(entry, "."))}
	if addr, err := netip.ParseAddr(strings.Trim(r.name, "[]")); err == nil {
		return ofAddress(entry, addr, 0)
	}
	if at := strings.LastIndexByte(r.name, ':'); at >= 0 {
		port, err := strconv.ParseUint(r.name[at+1:], 10, 16)
		if err != nil || port == 0 {
			return bad("the port is not a number from 1 to 65535")
		}
		r.name, r.port = strings.TrimSuffix(r.name[:at], "."), int(port)
		if addr, err := netip.ParseAddr(strings.Trim(r.name, "[]")); err == nil {
			return ofAddress(entry, addr, r.port)
		}
		if r.name == localhost && r.port == proxyPort {
			return hostRule{}, errProxyPort(entry)
		}
	}
	if rest, ok := strings.CutPrefix(r.name, "*"); ok {
		if r.below, r.name = true, rest; !strings.HasPrefix(rest, ".") || strings.Count(rest, ".") < 2 {
			return bad("a pattern covers the names below a domain of at least two labels")
		}
	}
	if addr, ok := netaddr.Numeric(r.name); ok {
		// The system's resolver would take it for the address, or another proxy would.
		if _, err := ofAddress(entry, addr, r.port); err != nil {
			return hostRule{}, err
		}
		return hostRule{}, fmt.Errorf("host %q: this is the address %s in another spelling; write %s", entry, addr, entryFor(addr.String(), max(r.port, 80)))
	}
	if !isName(strings.TrimPrefix(r.name, ".")) {
		return bad("not the name of a host")
	}
	return r, nil
}

// ofAddress is the rule of an entry that names an address.
func ofAddress(entry string, addr netip.Addr, port int) (hostRule, error) {
	addr = addr.Unmap().WithZone("") // a zone would hide which address it is
	switch {
	case addr.IsUnspecified():
		return hostRule{}, fmt.Errorf("host %q: programs listen at this address, and connect to 127.0.0.1 or ::1; write one of these", entry)
	case port == proxyPort && addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}):
		return hostRule{}, errProxyPort(entry)
	case netip.AddrPortFrom(addr, uint16(port)).String() == goAddr: //nolint:gosec // a port fits
		return hostRule{}, fmt.Errorf("host %q: in a sandbox, Go modules of the host are at this address; have the service listen at another port", entry)
	}
	return hostRule{name: addr.String(), addr: addr, port: port}, nil
}

// errProxyPort is about what would be where the sandbox's own proxy is.
func errProxyPort(entry string) error {
	return fmt.Errorf("host %q: in a sandbox, %s is the address of its proxy; have the service listen at another port", entry, proxyAddr)
}

// notHost says of a URL, or of what looks like one, which host it names.
func notHost(entry string) error {
	raw := entry
	if !strings.Contains(raw, "://") {
		raw = "//" + raw
	}
	if u, err := url.Parse(raw); err == nil && CheckHost(u.Host) == nil {
		return fmt.Errorf("host %q: a host is NAME or NAME:PORT; write %s", entry, u.Host)
	}
	return fmt.Errorf("host %q: a host is NAME or NAME:PORT, such as example.com or example.com:8443", entry)
}

// CheckHost reports why an entry cannot stand in [Net.Allow].
func CheckHost(entry string) error {
	_, err := parseHost(entry)
	return err
}

// CheckPort returns an error about an entry that names this machine without a port: the sandbox
// has the service at that port alone, and connections to others are refused without a word.
func CheckPort(entry string) error {
	r, err := parseHost(entry)
	if err != nil {
		return err
	}
	if r.port == 0 && !r.below && (r.name == localhost || r.addr.IsLoopback()) {
		return fmt.Errorf("host %q: a service of this machine needs its port; write %s", entry, net.JoinHostPort(r.name, "8080"))
	}
	return nil
}

// CanonicalHost returns the one spelling of an entry of [Net.Allow]: lower case, without the
// final dot of the name, an address as it is usually written. Entries with the same one allow
// the same. It returns other text, such as a variable, as it is.
func CanonicalHost(entry string) string {
	r, err := parseHost(entry)
	if err != nil {
		return entry
	}
	if r.below {
		r.name = "*" + r.name
	}
	if r.port == 0 {
		return r.name
	}
	return net.JoinHostPort(r.name, strconv.Itoa(r.port))
}

// isName reports whether s is a host name in lower case. Unlike those of certificates,
// names that are looked up may have underscores. Numbers that resolvers take for an address
// do not count as names.
func isName(s string) bool {
	if _, ok := netaddr.Numeric(s); ok {
		return false
	}
	return netaddr.IsHostName(strings.ReplaceAll(s, "_", "x"))
}

func (r hostRule) allows(host string, port int) bool {
	if r.port != port && (r.port != 0 || port != 443 && port != 80) {
		return false
	}
	if r.below {
		return strings.HasSuffix(host, r.name) && len(host) > len(r.name)
	}
	if r.name == localhost && (host == "127.0.0.1" || host == "::1") {
		return true
	}
	return host == r.name
}

// names reports whether the rule names an address itself: then it may be private.
func (r hostRule) names(addr netip.Addr, port int) bool {
	return (r.addr == addr || r.name == localhost && !r.below) && r.allows(addr.String(), port)
}

// entryFor is the narrowest entry that allows a destination.
func entryFor(host string, port int) string {
	if port == 443 || port == 80 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// check refuses a list that cannot be read.
func (n Net) check() error {
	if n.Mode < Off || n.Mode > Host {
		return fmt.Errorf("network mode %d does not exist", n.Mode)
	}
	for _, entry := range n.Allow {
		if _, err := parseHost(entry); err != nil {
			return err
		}
	}
	if all := n.forwards(); len(all) > maxForwards {
		return fmt.Errorf("the hosts name %d addresses of this machine, and a sandbox has at most %d", len(all), maxForwards)
	}
	return nil
}
