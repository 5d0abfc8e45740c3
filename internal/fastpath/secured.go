package fastpath

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"
)

// secured is a connection with TLS that net/http can get later. Like other connections it is
// read from by one goroutine at a time.
type secured struct {
	*tls.Conn
	again []byte // is read before anything else
}

func secure(nc net.Conn, cfg *tls.Config) *secured { return &secured{Conn: tls.Server(nc, cfg)} }

// Read implements [net.Conn].
func (s *secured) Read(b []byte) (int, error) {
	if len(s.again) > 0 {
		n := copy(b, s.again)
		s.again = s.again[n:]
		return n, nil
	}
	return s.Conn.Read(b)
}

// Unread implements [Conn].
func (s *secured) Unread(b []byte) { s.again = slices.Concat(b, s.again) }

// establish makes the handshake, and reports whether HTTP/1.1 follows. Otherwise the handshake
// has failed, or agreed on another protocol: net/http finds the same, and knows what to answer.
func (s *secured) establish(ctx context.Context, within time.Duration) bool {
	_ = s.SetDeadline(time.Now().Add(within)) // of a closed connection: the handshake says so
	if s.HandshakeContext(ctx) != nil {
		return false
	}
	_ = s.SetDeadline(time.Time{}) // see above
	switch s.ConnectionState().NegotiatedProtocol {
	case "", "http/1.1":
		return true
	}
	return false
}
