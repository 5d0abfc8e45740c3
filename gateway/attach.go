package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Limits of a connection to a session.
const (
	maxClientFrame = 4 << 10 // bytes: a client has little to say
	writeDeadline  = 10 * time.Second
	pingEvery      = 20 * time.Second
	deadAfter      = 45 * time.Second
)

// upgrader leaves the Origin to the listener's own check, which comes first.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: 5 * time.Second, ReadBufferSize: 512, WriteBufferSize: 1024,
	CheckOrigin: func(*http.Request) bool { return true },
}

// greeting is the first frame: the connection's id, and where it is.
type greeting struct {
	Type         string         `json:"type"` // "attached"
	ConnectionID string         `json:"connection_id"`
	Cursor       session.Cursor `json:"cursor"`
}

// cursor follows an event that is on the tape: what to come back with.
type cursor struct {
	Type   string         `json:"type"` // "cursor"
	Cursor session.Cursor `json:"cursor"`
}

// resync is sent instead of events that cannot be had.
type resync struct {
	Type string `json:"type"` // "resync"
	*session.Resync
}

// sessionEvents is GET /api/sessions/{id}/events, a WebSocket: every event of the
// session as its JSON envelope. A client that comes back says
// ?since_entry=<last id>, and &epoch= if it kept it; entries are numbered by the
// replay events and by the cursor frame behind each of the others. {"type":"heartbeat"}
// and WebSocket pongs keep it alive.
func (s *Server) sessionEvents(w http.ResponseWriter, r *http.Request) {
	o := session.AttachOptions{Adapter: "web", Epoch: r.URL.Query().Get("epoch"), Snapshot: true}
	if v := r.URL.Query().Get("since_entry"); v != "" {
		since, err := strconv.ParseInt(v, 10, 64)
		if err != nil || since < 0 {
			s.deny(w, r, http.StatusBadRequest, "since_entry is the id of an entry")
			return
		}
		o.Since = &since
	}
	id := r.PathValue("id")
	if _, err := s.cfg.Sessions.Find(id, ""); err != nil {
		status := http.StatusInternalServerError
		if errors.Is(err, session.ErrNotFound) || event.CheckSession(id) != nil {
			status = http.StatusNotFound
		}
		s.deny(w, r, status, "%v", err)
		return
	}
	s.live.Add(1) // while this is an ordinary request, the drain waits for it
	defer s.live.Done()
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer func() { _ = ws.Close() }()
	c := &liveConn{ws: ws, id: make(chan string, 1)}
	o.Send = c.send
	conn, err := s.cfg.Sessions.Attach(id, o)
	if err != nil {
		return
	}
	c.id <- conn.ID()
	c.read(func() { _ = s.cfg.Sessions.Heartbeat(id, conn.ID()) }, conn.Done(), s.closing)
	leave := s.cfg.Sessions.Detach
	select {
	case <-s.closing:
		leave = s.cfg.Sessions.Drop
	default:
	}
	_ = leave(id, conn.ID()) // or it has been detached
	<-conn.Done()
}

// liveConn is one client's WebSocket. One goroutine reads, and the session's
// connection writes.
type liveConn struct {
	ws *websocket.Conn
	id chan string // of the connection, for the greeting
}

func (c *liveConn) send(ctx context.Context, it session.Item) error {
	switch {
	case it.Snapshot != nil: // always the first
		select {
		case id := <-c.id:
			return c.write(greeting{"attached", id, it.Cursor})
		case <-ctx.Done():
			return ctx.Err()
		}
	case it.Resync != nil:
		return c.write(resync{"resync", it.Resync})
	}
	if err := c.write(it.Event); err != nil || it.Event.Entry == 0 {
		return err
	}
	return c.write(cursor{"cursor", it.Cursor})
}

func (c *liveConn) write(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := c.ws.SetWriteDeadline(time.Now().Add(writeDeadline)); err != nil {
		return err
	}
	return c.ws.WriteMessage(websocket.TextMessage, raw)
}

// read takes in what keeps the connection alive until it is over.
func (c *liveConn) read(alive func(), done, closing <-chan struct{}) {
	c.ws.SetReadLimit(maxClientFrame)
	extend := func() error { return c.ws.SetReadDeadline(time.Now().Add(deadAfter)) }
	c.ws.SetPongHandler(func(string) error {
		alive()
		return extend()
	})
	stop := make(chan struct{})
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		t := time.NewTicker(pingEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeDeadline)) != nil {
					return
				}
			case <-done: // the session has let go of it
				_ = c.ws.Close()
				return
			case <-closing:
				_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseServiceRestart, "yaya stops"), time.Now().Add(time.Second))
				_ = c.ws.Close()
				return
			case <-stop:
				return
			}
		}
	}()
	defer func() { <-pinged }()
	defer close(stop)
	if extend() != nil {
		return
	}
	for {
		_, data, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		var m struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(data, &m) != nil || m.Type != "heartbeat" {
			return
		}
		alive()
		if extend() != nil {
			return
		}
	}
}
