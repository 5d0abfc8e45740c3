// Package freeport names free ports of the loopback interface to tests and benchmarks. It is
// not shipped.
package freeport

import (
	"context"
	"fmt"
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

// Pick returns a port of 127.0.0.1 where nothing listens. Nobody else in the same process
// gets it. It may be called at the same time.
func Pick(ctx context.Context) (int, error) {
	var err error
	for range 100 {
		port := int(first + next.Add(1)%ports)
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", at(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("none of 100 ports of 127.0.0.1 is free: %w", err)
}

func at(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Port is [Pick] for a test.
func Port(t testing.TB) int {
	t.Helper()
	port, err := Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Addr returns the address of a [Port].
func Addr(t testing.TB) string {
	t.Helper()
	return at(Port(t))
}
