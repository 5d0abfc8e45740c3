package auth_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
)

// R6, AU-33, HT-21: ten failures a minute, then one waits, and longer each time;
// an IPv6 network is one peer; nobody pays for others, but for codes.
func TestAttempts(t *testing.T) {
	now := time.Now()
	a := auth.NewAttempts(func() time.Time { return now })
	peer, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for n := range 10 {
		if d := a.Blocked(peer, false); d != 0 {
			t.Fatalf("blocked for %v after %d", d, n)
		}
		a.Fail(peer, false)
	}
	first := a.Blocked(peer, false)
	if first <= 0 || a.Blocked(netip.MustParseAddr("::ffff:192.0.2.1"), false) != first {
		t.Errorf("blocked for %v", first)
	}
	if a.Blocked(other, true) != 0 {
		t.Error("another peer pays")
	}
	now = now.Add(first)
	if a.Blocked(peer, false) != 0 {
		t.Error("it is blocked for longer than was said")
	}
	a.Fail(peer, false)
	if second := a.Blocked(peer, false); second <= first {
		t.Errorf("the second time for %v, the first for %v", second, first)
	}
	now = now.Add(10 * time.Minute)
	a.Fail(peer, false)
	if a.Blocked(peer, false) != 0 {
		t.Error("it is never forgotten")
	}
	net := netip.MustParseAddr("2001:db8::1")
	for range 10 {
		net = net.Next()
		a.Fail(net, false)
	}
	if a.Blocked(netip.MustParseAddr("2001:db8::ffff"), false) == 0 || a.Blocked(netip.MustParseAddr("2001:db8:0:1::1"), false) != 0 {
		t.Error("a /64 is not one peer")
	}
	// Guesses of many peers end guessing for all, and nothing else.
	for n := range 200 {
		a.Fail(addr(n), true)
	}
	if a.Blocked(other, true) == 0 || a.Blocked(other, false) != 0 {
		t.Error("the budget of all for codes")
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
		a.Fail(addr(n), false)
	}
	if n := a.Peers(); n > 4096 {
		t.Errorf("%d peers are kept", n)
	}
}
