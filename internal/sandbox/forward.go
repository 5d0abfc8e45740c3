package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxForwards bounds the services of this machine that one sandbox reaches: each is a
// descriptor in one message.
const maxForwards = 64

// lowPorts are those below, where listening takes a right.
const lowPorts = 1024

// forward is a service at this machine's loopback interface that a list names. In a
// sandbox with an interface of its own it is at the same address: programs that know no
// proxy, such as clients of databases, find it there.
type forward struct {
	at netip.AddrPort
	to []netip.AddrPort // tried in this order
	// spare is an address that the sandbox may lack: "localhost" has another one.
	spare bool
}

// forwards are the services that a list names, each address once.
func (n Net) forwards() (all []forward) {
	if n.Mode != Hosts {
		return nil
	}
	for _, entry := range n.Allow {
		r, err := parseHost(entry)
		if err != nil {
			continue // check refuses it
		}
		for _, at := range r.addresses() {
			if !at.Addr().IsLoopback() || slices.ContainsFunc(all, func(f forward) bool { return f.at == at }) {
				continue
			}
			f := forward{at: at, to: []netip.AddrPort{at}}
			if r.name == localhost { // the service may listen at the other one alone
				other := netip.IPv6Loopback()
				if at.Addr().Is6() {
					other, f.spare = netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
				}
				f.to = append(f.to, netip.AddrPortFrom(other, at.Port()))
			}
			all = append(all, f)
		}
	}
	return all
}

// checkEndpoints refuses a service where yaya's own endpoint is in the sandbox.
func (p *Policy) checkEndpoints() error {
	for _, e := range p.Endpoints {
		for _, f := range p.Net.forwards() {
			if f.at.String() == e.Addr {
				return errEndpoint(f.at.String())
			}
		}
	}
	return nil
}

// errEndpoint is about what would be where yaya's own endpoint is.
func errEndpoint(entry string) error {
	return fmt.Errorf("host %q: yaya's own endpoint is at this address in the sandbox; have the service listen at another port, or leave one of the two out", entry)
}

// forwarder passes the connections of one listener of a sandbox on.
type forwarder struct {
	forward
	proxy    *proxy
	listener net.Listener
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

func (p *proxy) serveForward(l net.Listener, f forward) *forwarder {
	ctx, cancel := context.WithCancel(context.Background())
	s := &forwarder{forward: f, proxy: p, listener: l, cancel: cancel}
	s.work.Go(func() { s.serve(ctx) })
	return s
}

// close ends every connection and waits for that.
func (s *forwarder) close() {
	s.cancel()
	_ = s.listener.Close()
	s.work.Wait()
}

func (s *forwarder) serve(ctx context.Context) {
	const longest = time.Second
	for wait := 5 * time.Millisecond; ctx.Err() == nil; {
		conn, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			again := time.NewTimer(wait) // such as for want of descriptors
			select {
			case <-again.C:
			case <-ctx.Done():
				again.Stop()
			}
			wait = min(2*wait, longest)
			continue
		}
		wait = 5 * time.Millisecond
		s.work.Go(func() { s.pass(ctx, conn) })
	}
}

// pass carries one connection.
func (s *forwarder) pass(ctx context.Context, conn net.Conn) {
	ended := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer ended()
	s.proxy.starts.wait(ctx)
	addrs := make([]netip.Addr, len(s.to))
	for i, to := range s.to {
		addrs[i] = to.Addr()
	}
	up, err := s.proxy.dialAny(ctx, s.at.Addr().String(), int(s.at.Port()), addrs)
	if err != nil {
		abort(conn) // as if nothing had been there
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = up.Close() })
	defer stop()
	// A pool of connections to a database idles for hours. One whose other end is gone is
	// ended by the system, and each has a place.
	for _, c := range []net.Conn{conn, up} {
		if tcp, ok := c.(interface {
			SetKeepAliveConfig(net.KeepAliveConfig) error
		}); ok {
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true})
		}
	}
	relay(conn, conn, up, 0)
	_, _ = up.Close(), conn.Close()
}

// abort ends a connection so that its program sees an error, not an end.
func abort(conn net.Conn) {
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
