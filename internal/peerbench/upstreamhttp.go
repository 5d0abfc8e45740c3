//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// serveHTTP serves streamable HTTP at an address, and prints the address.
func (u *upstream) serveHTTP(addr string) error {
	l, err := net.Listen("tcp", addr) //nolint:noctx // lives as long as the program
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return (&http.Server{Handler: u, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}

// stream is the GET stream of a session.
type stream struct {
	mu  sync.Mutex
	out http.ResponseWriter // nil while there is none
}

func (s *stream) set(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = w
}

func (s *stream) send(msg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil {
		writeEvent(s.out, msg)
	}
}

// writeEvent sends one message as an event. An error shows at the next read of
// the client, which is gone.
func writeEvent(w http.ResponseWriter, msg []byte) {
	_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", msg)
	_ = http.NewResponseController(w).Flush()
}

// httpSession is a session with its GET stream.
type httpSession struct {
	*session
	gets stream
}

func (u *upstream) newHTTPSession() (*httpSession, string) {
	h := &httpSession{}
	h.session = u.newSession(h.gets.send)
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, s := range u.sessions {
		if s == h.session {
			u.http[id] = h
			return h, id
		}
	}
	return h, ""
}

// ServeHTTP serves the one endpoint.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	u.mu.Lock()
	s := u.http[id]
	u.mu.Unlock()
	if id != "" && s == nil {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	switch r.Method {
	case http.MethodPost:
		u.post(w, r, s)
	case http.MethodGet:
		if s == nil {
			http.Error(w, "a session is needed", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		s.gets.set(w)
		<-r.Context().Done()
		s.gets.set(nil)
	case http.MethodDelete:
		u.mu.Lock()
		delete(u.http, id)
		delete(u.sessions, id)
		u.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > maxMessage {
		return nil, errors.New("the message is too large")
	}
	if r.ContentLength >= 0 {
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(r.Body, maxMessage))
}

func (u *upstream) post(w http.ResponseWriter, r *http.Request, s *httpSession) {
	body, err := readBody(r)
	var m jsonrpc.Message
	if err == nil {
		err = m.Parse(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case s == nil && m.Method == "initialize":
		var id string
		s, id = u.newHTTPSession()
		w.Header().Set("Mcp-Session-Id", id)
	case s == nil && u.modern && r.Header.Get("Mcp-Protocol-Version") == modern:
		// The modern era has no sessions: what a request needs lives as long as it.
		s = &httpSession{session: &session{up: u, tell: func([]byte) {}, asked: map[string]chan []byte{}, running: map[string]context.CancelCauseFunc{}}}
	case s == nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.AppendError(nil, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "a session is needed"}))
		return
	}
	if !m.IsRequest() {
		s.arrived(&m)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !slow(&m) {
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(s.answer(r.Context(), make([]byte, 0, len(body)+128), &m, s.tell))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	send := func(msg []byte) { writeEvent(w, msg) }
	// In the legacy era a connection that ends cancels nothing: a notification does,
	// and it may arrive after the end.
	writeEvent(w, s.answer(context.WithoutCancel(r.Context()), nil, &m, send))
}
