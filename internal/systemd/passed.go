package systemd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Passed are the listening sockets that a process was started with and has not taken yet. A
// nil *Passed has none. It is not safe for concurrent use.
type Passed struct{ rest []passed }

type passed struct {
	name string
	l    net.Listener
}

// Open makes listeners of sockets, which stay the caller's. Names are those that [Passed.Take]
// knows; a socket with another name gets the first of them that no other socket has, as
// systemd names a socket after its unit by default.
func Open(sockets []Socket, names ...string) (*Passed, error) {
	p := new(Passed)
	var errs []error
	for _, s := range sockets {
		l, err := s.Listener()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.rest = append(p.rest, passed{s.Name, l})
	}
	for i := range p.rest {
		if slices.Contains(names, p.rest[i].name) {
			continue
		}
		free := slices.IndexFunc(names, func(name string) bool {
			return !slices.ContainsFunc(p.rest, func(x passed) bool { return x.name == name })
		})
		if free >= 0 {
			p.rest[i].name = names[free]
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Addr returns the address of the socket with a name, "" if there is none.
func (p *Passed) Addr(name string) string {
	if p == nil {
		return ""
	}
	for _, x := range p.rest {
		if x.name == name {
			return x.l.Addr().String()
		}
	}
	return ""
}

// Take returns the listener with a name, nil if there is none. It has to listen at addr, or at
// some port of it if that port is 0.
func (p *Passed) Take(name, network, addr string) (net.Listener, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	i := slices.IndexFunc(p.rest, func(x passed) bool { return x.name == name })
	if i < 0 {
		return nil, nil //nolint:nilnil // none is no error
	}
	at := p.rest[i].l.Addr()
	if at.Network() != network || network == "tcp" && !sameAddr(at.String(), addr) || network == "unix" && at.String() != addr {
		return nil, fmt.Errorf("passed socket %q listens on %s %s, not on %s %s: change ListenStream= of its unit, or the flag", name, at.Network(), at, network, addr)
	}
	l := p.rest[i].l
	p.rest = slices.Delete(p.rest, i, i+1)
	return l, nil
}

// sameAddr reports whether a socket's address is the one that was asked for. The name of a
// host is not looked up: its port decides.
func sameAddr(at, wanted string) bool {
	host, port, err := net.SplitHostPort(wanted)
	if err != nil {
		return false
	}
	is, err := netip.ParseAddrPort(at)
	if err != nil {
		return false
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n != 0 && n != int(is.Port()) { //nolint:noctx // it asks nobody
		return false
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "":
		return is.Addr().IsUnspecified()
	case err != nil: // a name
		return true
	case ip.IsUnspecified():
		return is.Addr().IsUnspecified()
	}
	return is.Addr().Unmap() == ip.Unmap()
}

// Close closes the listeners that nobody has taken. An error names them: a socket that is
// open without being served keeps its clients waiting.
func (p *Passed) Close() error {
	if p == nil || len(p.rest) == 0 {
		return nil
	}
	var left []string
	for _, x := range p.rest {
		left = append(left, fmt.Sprintf("%q (%s)", x.name, x.l.Addr()))
		_ = x.l.Close() // nothing was accepted
	}
	p.rest = nil
	return fmt.Errorf("passed sockets %s are for no listener of this configuration: remove their units, or add the flags", strings.Join(left, ", "))
}

// Keep returns another descriptor of a listener's socket, which stays open when the listener
// is closed.
func Keep(name string, l net.Listener) (Socket, error) {
	f, ok := l.(interface{ File() (*os.File, error) })
	if !ok {
		return Socket{}, fmt.Errorf("socket %q has no descriptor", name)
	}
	file, err := f.File()
	if err != nil {
		return Socket{}, fmt.Errorf("socket %q: %w", name, err)
	}
	return Socket{name, file}, nil
}
