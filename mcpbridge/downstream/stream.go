package downstream

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

const noteToolsChanged = "notifications/tools/list_changed"

// stream is an open way to a client for what concerns no request. It holds at
// most one list change: more of them say nothing new.
type stream struct {
	changed chan struct{}
	over    chan struct{}
	once    sync.Once
}

func newStream() *stream {
	return &stream{changed: make(chan struct{}, 1), over: make(chan struct{})}
}

func (st *stream) end() { st.once.Do(func() { close(st.over) }) }

// attach registers a stream for changes; it reports false when there are too
// many.
func (s *Server) attach(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.streams) >= maxStreams {
		return false
	}
	s.streams[st] = struct{}{}
	return true
}

func (s *Server) detach(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}

// toolsChanged wakes every stream. It runs on the goroutine of whoever changed
// the tools.
func (s *Server) toolsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		select {
		case st.changed <- struct{}{}:
		default:
		}
	}
}

// listen serves subscriptions/listen: it acknowledges what is granted and
// delivers until the client or the server ends it.
func (s *Server) listen(ctx context.Context, x *exchange) ([]byte, error) {
	if !x.modern {
		return nil, fail(jsonrpc.CodeMethodNotFound, "unknown method %q", x.msg.Method)
	}
	raw := x.msg.Params.Get("notifications")
	if raw == nil || raw[0] != '{' {
		return nil, fail(jsonrpc.CodeInvalidParams, "subscriptions/listen needs notifications")
	}
	want, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil, err
	}
	tools := string(want.Get("toolsListChanged")) == "true"
	meta := append([]byte(`{"`+mcp.MetaKeySubscriptionID+`":`), x.msg.ID...)
	meta = append(meta, '}')

	st := newStream()
	if !s.attach(st) {
		return nil, fail(jsonrpc.CodeInternal, "too many subscriptions")
	}
	defer s.detach(st)
	granted := `{}`
	if tools {
		granted = `{"toolsListChanged":true}`
	}
	ack := append([]byte(`{"notifications":`+granted+`,"_meta":`), meta...)
	if err := x.notify(jsonrpc.AppendRequest(nil, nil, "notifications/subscriptions/acknowledged", append(ack, '}'))); err != nil {
		return nil, errNoAnswer
	}
	if tools {
		note := jsonrpc.AppendRequest(nil, nil, noteToolsChanged, append(append([]byte(`{"_meta":`), meta...), '}'))
		for open := true; open; {
			select {
			case <-st.changed:
				if err := x.notify(note); err != nil {
					return nil, errNoAnswer
				}
			case <-ctx.Done():
				return nil, errNoAnswer
			case <-s.life.Done():
				open = false
			}
		}
	}
	return append(append([]byte(`{"resultType":"complete","_meta":`), meta...), '}'), nil
}
