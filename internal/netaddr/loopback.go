package netaddr

import "net/netip"

// Loopback reports whether the host of a URL is this machine by its form: localhost, or an address
// of it. A name that begins like an address is a name.
func Loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
