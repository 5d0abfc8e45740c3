package forward

import (
	"context"
	"crypto/tls"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
)

const (
	// drainTime is how long requests may go on that other nodes have passed on.
	drainTime = 5 * time.Second
	// linger is how long connections stay open that nobody uses. A request may be on its way on one that
	// was used a moment ago.
	linger = 500 * time.Millisecond
)

// Serve serves the requests of other nodes until ctx ends, and closes the listener.
func (f *Forwarder) Serve(ctx context.Context, l net.Listener, v Verifier, next http.Handler) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var leaving atomic.Bool
	s := &http.Server{
		Handler: last(&leaving, received(v, next)), BaseContext: func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: greetTime, IdleTimeout: idleTime + 10*time.Second, MaxHeaderBytes: maxHeader, // the other end gives up first
		ErrorLog: stdlog.New(f.log.Sample(&zerolog.BurstSampler{Burst: 10, Period: time.Minute}), "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(tls.NewListener(l, f.tls)) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		leaving.Store(true)
		err = l.Close() // others wait for this node to come back, and make no connections to it
		<-time.After(linger)
		drain, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		if s.Shutdown(drain) != nil { // streams end here; they are resumed elsewhere
			cut()
			err = errors.Join(err, s.Close())
		}
		done()
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) && !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// last has each connection end with the next answer once this node leaves: if it were closed while it
// is idle, a request that is on its way would be lost.
func last(leaving *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving.Load() && r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// received finds out who a request of another node is from.
func received(v Verifier, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := callerOf(v, r)
		r.Header.Del(callerHeader)
		if err != nil {
			http.Error(w, "the caller of this request is not established: "+err.Error(), http.StatusForbidden)
			return
		}
		ctx, end := context.WithCancelCause(auth.WithPrincipal(context.WithValue(r.Context(), passedKey{}, true), p))
		defer end(nil)
		defer v.Hold(p, end)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

type passedKey struct{}

// Passed reports whether another node has passed a request on.
func Passed(ctx context.Context) bool { return ctx.Value(passedKey{}) != nil }

func callerOf(v Verifier, r *http.Request) (auth.Principal, error) {
	switch who := r.Header.Get(callerHeader); {
	case who == fromOwner:
		return auth.LocalOwner, nil
	case strings.HasPrefix(who, fromExternal):
		id, err := url.QueryUnescape(strings.TrimPrefix(who, fromExternal))
		if err != nil || id == "" {
			return auth.Principal{}, errors.New("it has no name")
		}
		return auth.Principal{Kind: auth.External, ID: id}, nil
	case who == fromToken:
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if auth.IsLasting(token) {
			return v.VerifyLasting(token)
		}
		return v.VerifyToken(token)
	}
	return auth.Principal{}, errors.New("the node does not say who it is")
}
