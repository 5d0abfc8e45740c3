//go:build !linux

package gateway

import "net"

// ownsSocket has no socket table to ask here: every loopback peer is taken for
// the owner (docs/SECURITY.md says so).
func ownsSocket(_, _ *net.TCPAddr) bool { return true }
