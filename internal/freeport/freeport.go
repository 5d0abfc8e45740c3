// Package freeport names free ports of the loopback interface to tests. It is not shipped.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// Ports that systems give to nobody who does not name them: a port that was free stays
// free until its test listens there, also again, whatever else connects and listens meanwhile.
const first, ports = 10_000, 20_000

var next = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32N(ports)) //nolint:gosec // another run of the tests has others
	return n
}()

// Addr returns an address of 127.0.0.1 where nothing listens. No other test of the
// same binary gets it. Tests may call it at the same time.
func Addr(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(first+next.Add(1)%ports)))
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(t.Context(), "tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatalf("Listen on 100 ports = %v, want one that is free", err)
	return ""
}

// Port returns the port of an [Addr].
func Port(t testing.TB) int {
	t.Helper()
	_, port, _ := net.SplitHostPort(Addr(t))
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
