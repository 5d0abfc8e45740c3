package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/systemd"
)

// linger is how long a connection that no successor can go on with stays open without a
// request. Each answer closes its connection, and the client's next one waits for the successor.
// A connection that is closed without an answer could have a request under way, so only those
// are that nobody has used for so long.
const linger = 500 * time.Millisecond

// comeBack is all that a stream says that is opened meanwhile: clients of server-sent events
// come back for their stream after a clean end, and some of them only then.
const comeBack = "retry: 250\n\n"

var connectionClose = []string{"close"} // nobody writes to it

// moved sends the clients of a server that leaves to its successor: their streams end, and
// after each answer they have to connect again.
func (s *Server) moved(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/event-stream")
		if s.leaving.Load() {
			h := w.Header()
			h["Connection"] = connectionClose
			if stream {
				h.Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(comeBack)) // who is gone is not told
				return
			}
		}
		if stream {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer s.whenGone(cancel)()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// Left is the state that a server hands to its successor.
type Left struct {
	Sockets []systemd.Socket // the listening ones
	Conns   []*os.File       // connections on which nothing is under way
	Drained bool             // no call was cut off
}

// Leave ends serving for a successor that gets the listening sockets, whose backlog keeps new
// connections for it, and the connections that are there. Streams end first: quiet ends those
// that the server does not know of, and returns while calls go on. Requests that run have until
// drain to end. The server still has to be unloaded, which cuts off the rest. If Leave fails,
// the server goes on.
func (s *Server) Leave(ctx context.Context, drain time.Duration, quiet func()) (Left, error) {
	s.leaving.Store(true)
	sockets, err := s.listeners.HandOver()
	if err != nil {
		s.leaving.Store(false)
		return Left{}, err
	}
	s.goes()
	quiet()
	s.endLive()
	ctx, cancel := context.WithTimeout(ctx, max(drain, 2*linger))
	defer cancel()
	drained := s.empty(ctx)
	return Left{sockets, s.conns.passing.take(), drained}, nil
}

// empty ends the connections, each when nothing is under way on it, and reports whether all
// have ended when ctx does. [http.Server.Shutdown] alone would throw away requests that it reads
// from HTTP/1.1 connections meanwhile, so it comes when only HTTP/2 is left, which it tells to go.
func (s *Server) empty(ctx context.Context) bool {
	s.conns.passing.on.Store(true)
	s.serving.Wait() // the listeners are closed: no connection comes after this
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for quiet := map[net.Conn]time.Time{}; s.endQuiet(quiet) > 0; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
	err := s.http.Shutdown(ctx)
	return err == nil || errors.Is(err, net.ErrClosed) // the listeners are closed already
}

// endQuiet ends the connections on which nothing is under way, and returns how many there were
// besides HTTP/2. quiet has since when others than those that a successor goes on with are quiet.
func (s *Server) endQuiet(quiet map[net.Conn]time.Time) (were int) {
	for c, state := range s.opened.all() {
		if state != http.StateNew && multiplexed(c) {
			continue
		}
		were++
		g, _ := c.(*guest)
		switch since, seen := quiet[c]; {
		case state == http.StateActive:
			delete(quiet, c)
		case g != nil && g.passable:
			g.pass(&s.conns.passing)
		case !seen:
			quiet[c] = time.Now()
		case time.Since(since) >= linger:
			_ = c.Close() // net/http may have done so already
		}
	}
	return were
}

// lookEvery is how often a server that leaves looks for connections on which nothing is under way.
const lookEvery = 10 * time.Millisecond
