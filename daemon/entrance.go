package daemon

import (
	"context"
	"errors"

	"github.com/yaya-ai/yaya/gateway"
)

// entrance is the phase of the listeners: bound, so that an address in use is an error
// before anything is started, and every later phase knows the addresses. The last phase
// begins to serve; who connects earlier waits.
type entrance struct {
	flags     *Listen
	source    *certSource
	listeners *gateway.Listeners
	web       gateway.Config // what the flags say of it
	addrs     []string       // that this yaya listens on
	bases     []string       // URLs by which clients reach it, the best first
	local     string         // the URL for this machine
}

// openEntrance binds what the flags name, or takes the sockets that this process was started
// with.
func openEntrance(ctx context.Context, at *place, l *Listen, with *Inherited) (_ *entrance, err error) {
	in := &entrance{flags: l}
	passed, err := with.passed()
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, passed.Close()) // what nothing listens on
		if err != nil {
			err = errors.Join(err, in.Close(ctx))
		}
	}()
	if in.source, err = l.source(ctx, at.data, passed, at.log); err != nil {
		return nil, err
	}
	if in.web, err = l.gateway(in.source); err != nil {
		return nil, err
	}
	if in.web.Socket = at.Socket(); len(in.web.Socket) > MaxSocketPath {
		at.log.Warn().Str("path", in.web.Socket).Msg("the data directory's path is too long for a socket: yaya's own commands cannot reach this daemon")
		in.web.Socket = ""
	}
	in.web.Log, in.web.Passed, in.web.Adopt = at.log, passed, with.clientConns()
	if addr := passed.Addr(gateway.MainSocket); addr != "" && !l.given("listen") {
		in.web.Listen = addr // the unit of the socket says where, of a program before this one, too
	}
	if in.listeners, err = gateway.Listen(ctx, in.web); err != nil {
		return nil, err
	}
	in.addrs, in.bases = []string{in.listeners.Addr()}, l.bases(in.listeners.Addr(), in.source)
	in.local = in.bases[0]
	if local := in.listeners.LocalAddr(); local != "" {
		in.addrs, in.local = append(in.addrs, local), "http://"+local
	}
	if in.source.plain != "" {
		in.addrs = append(in.addrs, in.source.plain)
	}
	return in, nil
}

// Close lets go of the addresses, if nobody has served there, and of the certificate.
func (in *entrance) Close(context.Context) error {
	var errs [2]error
	if in.listeners != nil {
		errs[0] = in.listeners.Close()
	}
	if in.source != nil {
		errs[1] = in.source.Close()
	}
	return errors.Join(errs[:]...)
}
