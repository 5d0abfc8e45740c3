package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"

	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/systemd"
)

// Listeners are those of a server: bound, and not served before the server runs. A client
// that connects earlier waits.
type Listeners struct {
	tcp   net.Listener
	local net.Listener // nil for none
	unix  net.Listener // nil for none
	// adopted has the connections of the program before this one; nil for none.
	adopted net.Listener
}

// Listen binds the addresses and the socket of cfg, of which it reads nothing else but
// whether there is TLS, or a proxy with it. It comes first of all, so that an address in
// use is an error before anything else is started, and so that every other part is made
// with the addresses.
func Listen(ctx context.Context, cfg Config) (_ *Listeners, err error) {
	cfg.Listen = cmp.Or(cfg.Listen, DefaultListen)
	if cfg.TLS == nil && cfg.Proxies == nil {
		if err := loopbackOnly(ctx, cfg.Listen); err != nil {
			return nil, err
		}
	}
	l := new(Listeners)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.tcp, err = listenTCP(ctx, cfg.Passed, MainSocket, cfg.Listen); err != nil {
		return nil, err
	}
	if cfg.TLS == nil && cfg.Proxies == nil { // a passed socket can have another address than the one that was looked up
		if err := loopbackOnly(ctx, l.Addr()); err != nil {
			return nil, err
		}
	}
	if cfg.Local != "" {
		if err := localOnly(ctx, cfg.Local); err != nil {
			return nil, err
		}
		if l.local, err = listenTCP(ctx, cfg.Passed, LocalSocket, cfg.Local); err != nil {
			return nil, err
		}
		if err := localOnly(ctx, l.LocalAddr()); err != nil {
			return nil, err
		}
	}
	if cfg.Socket != "" {
		l.unix, err = listenSocket(ctx, cfg.Passed, cfg.Socket)
		switch {
		case errors.Is(err, ErrNoSocket):
			cfg.Log.Warn().Msg(err.Error())
		case err != nil:
			return nil, err
		}
	}
	if a := adopt(cfg.Adopt); a != nil {
		l.adopted = a
	}
	return l, nil
}

// Names of sockets that a service manager may pass, or the yaya before this one.
const (
	MainSocket  = "listen"
	LocalSocket = "local"
	UnixSocket  = "socket"
)

// listenTCP takes the passed socket of a name, or binds one.
func listenTCP(ctx context.Context, passed *systemd.Passed, name, addr string) (net.Listener, error) {
	if l, err := passed.Take(name, "tcp", addr); l != nil || err != nil {
		return l, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, cannotListen("--"+name, addr, err) // flags have the names of the sockets
	}
	return l, nil
}

// Keep makes the path of a passed Unix socket disappear when the listeners are closed: until
// then the program before this one could go on with it.
func (l *Listeners) Keep() {
	if u, ok := l.unix.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(true)
	}
}

// HandOver ends accepting, and returns the sockets: connections wait in them for the process
// that gets them. Their closing is the caller's.
func (l *Listeners) HandOver() (out []systemd.Socket, err error) {
	for name, x := range map[string]net.Listener{MainSocket: l.tcp, LocalSocket: l.local, UnixSocket: l.unix} {
		if x == nil {
			continue
		}
		s, err := systemd.Keep(name, x)
		if err != nil {
			for _, s := range out {
				_ = s.Close()
			}
			return nil, err
		}
		out = append(out, s)
	}
	if u, ok := l.unix.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	return out, l.Close()
}

// Close lets go of them. It may be called more than once, and when the server that they
// were made for has closed them.
func (l *Listeners) Close() error {
	var err error
	for _, x := range l.all() {
		if e := x.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// all are those that there are.
func (l *Listeners) all() (out []net.Listener) {
	for _, x := range []net.Listener{l.tcp, l.local, l.unix, l.adopted} {
		if x != nil {
			out = append(out, x)
		}
	}
	return out
}

// Addr returns the address of the first one.
func (l *Listeners) Addr() string { return l.tcp.Addr().String() }

// LocalAddr returns the address of the one for this machine alone, "" without one.
func (l *Listeners) LocalAddr() string {
	if l.local == nil {
		return ""
	}
	return l.local.Addr().String()
}

// cannotListen says what to do when an address cannot be had.
func cannotListen(flag, addr string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot listen on %s (ports below 1024 need a right: setcap cap_net_bind_service=+ep on the program, AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit, or another port with %s that the router forwards to): %w", addr, flag, err)
	}
	return fmt.Errorf("cannot listen on %s (is another yaya running? choose another with %s): %w", addr, flag, err)
}

// loopbackOnly refuses to listen without TLS at an address that other machines can reach.
func loopbackOnly(ctx context.Context, addr string) error {
	reached, err := reachable(ctx, addr)
	if err == nil && reached {
		err = fmt.Errorf("listen address %q can be reached from other machines: give it a certificate (--acme, --tls-self-signed, or --tls-cert and --tls-key) or put a proxy with one before it (--behind-proxy), or use 127.0.0.1", addr)
	}
	return err
}

// localOnly is [loopbackOnly] for the listener that has no TLS beside one that has.
func localOnly(ctx context.Context, addr string) error {
	reached, err := reachable(ctx, addr)
	if err == nil && reached {
		err = fmt.Errorf("--local %s can be reached from other machines, and is served without TLS: use an address of this machine alone, such as %s; other machines use the listener with TLS (--listen)", addr, DefaultListen)
	}
	return err
}

// reachable reports whether other machines can reach an address.
func reachable(ctx context.Context, addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("listen address %q is not host:port: %w", addr, err)
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, cmp.Or(host, "0.0.0.0"))
	if err != nil {
		return false, fmt.Errorf("listen address %q: %w", addr, err)
	}
	return slices.ContainsFunc(ips, func(ip net.IPAddr) bool { return !ip.IP.IsLoopback() }), nil
}

// ErrNoSocket means that this system has no Unix sockets, as Windows before version 1803.
var ErrNoSocket = errors.New("this system has no Unix sockets: yaya's own commands cannot reach this daemon (Windows has them from version 1803)")

// listenSocket binds the Unix socket for its owner only. A socket that a dead
// yaya left behind is replaced; the caller holds the lock of the data directory.
func listenSocket(ctx context.Context, passed *systemd.Passed, path string) (net.Listener, error) {
	if l, err := passed.Take(UnixSocket, "unix", path); l != nil || err != nil {
		return l, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:forbidigo // a socket has no os.Root
		return nil, fmt.Errorf("socket: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if errors.Is(err, errnos.NoFamily) {
		return nil, ErrNoSocket
	}
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}
