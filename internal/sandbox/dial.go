package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/passedon"
)

// addressOf returns the address of a host that is an address, the zero one for a
// name.
func addressOf(host string) netip.Addr {
	addr, _ := netip.ParseAddr(host)
	return addr
}

// dial connects to an allowed destination. It dials exactly the address that it
// checked.
func (p *proxy) dial(ctx context.Context, hostport string) (net.Conn, error) {
	host, port, err := splitHost(hostport, 0)
	if err != nil {
		return nil, err
	}
	addrs, err := p.lookUp(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return p.dialAny(ctx, host, port, addrs)
}

// lookUp returns the addresses of a host.
func (p *proxy) lookUp(ctx context.Context, host string, port int) ([]netip.Addr, error) {
	if addr := addressOf(host); addr.IsValid() {
		return []netip.Addr{addr}, nil
	}
	within, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	addrs, err := p.resolve(within, host)
	if err == nil && len(addrs) == 0 {
		err = errors.New("it has no address")
	}
	if err != nil {
		why := err.Error()
		if d, ok := errors.AsType[*net.DNSError](err); ok {
			why = d.Err
		}
		return nil, p.failed(ctx, host, port, fmt.Errorf("%s could not be resolved: %s", host, why))
	}
	return addrs, nil
}

// failed reports that an allowed connection failed, and returns the reason.
func (p *proxy) failed(ctx context.Context, host string, port int, why error) error {
	if ctx.Err() == nil && p.net.Unreached != nil { // else nobody waits for it
		p.refusals.wait(ctx)
		p.net.Unreached(host, port, why.Error())
	}
	return why
}

// dialAny connects to one of the addresses of a destination. A name that leads to several
// that are refused is refused once.
func (p *proxy) dialAny(ctx context.Context, host string, port int, addrs []netip.Addr) (net.Conn, error) {
	within, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	var failed error
	var private []netip.Addr
	var own netip.AddrPort
	for _, addr := range addrs {
		addr = addr.Unmap()
		at := netip.AddrPortFrom(addr, uint16(port)) //nolint:gosec // splitHost bounds it
		switch {
		case itsOwn(at, p.listens()):
			own = at
		case !p.public(addr) && !p.named(addr, port):
			private = append(private, addr)
		default:
			conn, err := dialAt(within, at)
			if err == nil {
				return conn, nil
			}
			if failed = err; addr.IsLoopback() && errors.Is(err, errnos.Refused) {
				failed = fmt.Errorf("nothing listens there on this machine: %w", err)
			}
			if host != addr.String() {
				failed = fmt.Errorf("%s: %w", at, failed)
			}
		}
	}
	switch {
	case failed != nil:
		return nil, p.failed(ctx, host, port, failed)
	case own.IsValid():
		return nil, p.refuse(ctx, host, port, isYaya(own), "")
	}
	addr := slices.MinFunc(private, netip.Addr.Compare) // names servers give them in any order
	entry, cannot := p.offer(addr.String(), port)
	why := fmt.Sprintf("%s is not an address of the public internet; ", addr) + cmp.Or(cannot, "allow the address itself if that is meant")
	if !addressOf(host).IsValid() {
		where := "into a private network"
		if addr.IsLoopback() {
			where = "to this machine"
		}
		why = fmt.Sprintf("%s leads %s: %s", host, where, why)
	}
	return nil, p.refuse(ctx, host, port, why, entry)
}

// dialAt connects to an address. A service of this machine could be another yaya of the
// user's: what comes from a sandbox is marked for it.
func dialAt(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{ControlContext: func(_ context.Context, network, address string, c syscall.RawConn) error {
		if address != at.String() {
			return fmt.Errorf("%s would be dialed in place of %s", address, at)
		}
		if at.Addr().IsLoopback() {
			return passedon.Mark(network, c)
		}
		return nil
	}}
	conn, err := d.DialContext(ctx, "tcp", at.String())
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return nil, op.Err
	}
	return conn, err
}

// named reports whether the list names an address itself.
func (p *proxy) named(addr netip.Addr, port int) bool {
	return slices.ContainsFunc(p.rules, func(r hostRule) bool { return r.names(addr, port) })
}
