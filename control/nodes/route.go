package nodes

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/yaya-ai/yaya/internal/netaddr"
)

// maxRoute is the length of a host name and a port.
const maxRoute = 253 + 6

// SplitRoute splits the address of a node's server, HOST:PORT. Other nodes have to be able to dial it,
// so it cannot be that of all interfaces.
func SplitRoute(route string) (host string, port int, err error) {
	bad := fmt.Errorf("%.300q is not the address of a node: it is HOST:PORT, such as 10.0.0.1:6222, where the other nodes reach this machine", route)
	if len(route) > maxRoute {
		return "", 0, bad
	}
	host, p, err := net.SplitHostPort(route)
	if err != nil {
		return "", 0, bad
	}
	if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != p {
		return "", 0, bad
	}
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() && ip.Zone() == "" || err != nil && netaddr.IsHostName(host) {
		return host, port, nil
	}
	return "", 0, bad
}
