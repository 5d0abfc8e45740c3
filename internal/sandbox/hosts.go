package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/netaddr"
)

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
	r := hostRule{name: strings.ToLower(strings.TrimSuffix(entry, "."))}
	if addr, err := netip.ParseAddr(strings.Trim(r.name, "[]")); err == nil {
		return hostRule{name: addr.String(), addr: addr.Unmap()}, nil
	}
	if at := strings.LastIndexByte(r.name, ':'); at >= 0 {
		port, err := strconv.ParseUint(r.name[at+1:], 10, 16)
		if err != nil || port == 0 {
			return bad("the port is not a number from 1 to 65535")
		}
		r.name, r.port = r.name[:at], int(port)
		if addr, err := netip.ParseAddr(strings.Trim(r.name, "[]")); err == nil {
			r.name, r.addr = addr.String(), addr.Unmap()
			return r, nil
		}
	}
	if rest, ok := strings.CutPrefix(r.name, "*"); ok {
		if r.below, r.name = true, rest; !strings.HasPrefix(rest, ".") || strings.Count(rest, ".") < 2 {
			return bad("a pattern covers the names below a domain of at least two labels")
		}
	}
	if !isName(strings.TrimPrefix(r.name, ".")) {
		return bad("not the name of a host")
	}
	return r, nil
}

// CheckHost reports why an entry cannot stand in [Net.Allow].
func CheckHost(entry string) error {
	_, err := parseHost(entry)
	return err
}

// isName reports whether s is a host name in lower case. Unlike those of certificates,
// names that are looked up may have underscores.
func isName(s string) bool { return netaddr.IsHostName(strings.ReplaceAll(s, "_", "x")) }

func (r hostRule) allows(host string, port int) bool {
	if r.port != port && (r.port != 0 || port != 443 && port != 80) {
		return false
	}
	if r.below {
		return strings.HasSuffix(host, r.name) && len(host) > len(r.name)
	}
	return host == r.name
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
	return nil
}
