package auth_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
)

// R6, AU-33, HT-21: ten failures a minute, then one waits, and longer each time;
// an IPv6 network is one peer; nobody pays for others.
func TestAttempts(t *testing.T) {
	now := time.Now()
	a := auth.NewAttempts(func() time.Time { return now })
	peer, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for n := range 10 {
		if d := a.Blocked(peer); d != 0 {
			t.Fatalf("blocked for %v after %d", d, n)
		}
		a.Fail(peer)
	}
	first := a.Blocked(peer)
	if first <= 0 || a.Blocked(netip.MustParseAddr("::ffff:192.0.2.1")) != first {
		t.Errorf("blocked for %v", first)
	}
	if a.Blocked(other) != 0 {
		t.Error("another peer pays")
	}
	now = now.Add(first)
	if a.Blocked(peer) != 0 {
		t.Error("it is blocked for longer than was said")
	}
	a.Fail(peer)
	if second := a.Blocked(peer); second <= first {
		t.Errorf("the second time for %v, the first for %v", second, first)
	}
	now = now.Add(10 * time.Minute)
	a.Fail(peer)
	if a.Blocked(peer) != 0 {
		t.Error("it is never forgotten")
	}
	net := netip.MustParseAddr("2001:db8::1")
	for range 10 {
		net = net.Next()
		a.Fail(net)
	}
	if a.Blocked(netip.MustParseAddr("2001:db8::ffff")) == 0 || a.Blocked(netip.MustParseAddr("2001:db8:0:1::1")) != 0 {
		t.Error("a /64 is not one peer")
	}
	// SEC-9: failures of many peers cost another one nothing.
	for n := range 2000 {
		a.Fail(addr(n / 10))
	}
	if d := a.Blocked(other); d != 0 {
		t.Errorf("after the failures of 200 others a peer waits %v, want 0", d)
	}
}

func addr(n int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 0x0a000000+uint32(n))
	return netip.AddrFrom4(b)
}

// HT-21: a million peers do not take a million places.
func TestAttemptsAreBounded(t *testing.T) {
	a := auth.NewAttempts(time.Now)
	for n := range 1_000_000 {
		a.Fail(addr(n))
	}
	if n := a.Peers(); n > 4096 {
		t.Errorf("%d peers are kept", n)
	}
}
