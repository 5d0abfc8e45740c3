package sessions_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// waiting is the context of a request that says when its handler begins to wait.
type waiting struct {
	context.Context
	begun func()
}

func (c waiting) Done() <-chan struct{} {
	c.begun()
	return c.Context.Done()
}

// COD-3: a reader that comes while the session's feed ends is not joined to that feed,
// which would end its stream at once: it gets what there was, and what comes.
func TestReaderComesWhileTheFeedEnds(t *testing.T) {
	w := newWorld(t, "")
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.s.ServeHTTP(rw, r.WithContext(waiting{auth.WithPrincipal(r.Context(), w.who), begin}))
	}))
	defer server.Close()

	// The filter runs while the feed of the new session is being detached, and the session
	// lets go of the feed when the filter returns: by then, the reader waits in its handler.
	var reader *follower
	var arrived sync.WaitGroup
	var once sync.Once
	sub, err := w.k.Bus.Subscribe(bus.SubscribeOptions{Name: "test", Filter: func(ev event.Event) bool {
		once.Do(func() {
			gone, _ := ev.Payload.(event.ContextDetached)
			arrived.Go(func() {
				defer begin() // also if it is refused
				reader = open(t, server, gone.SessionID)
			})
			<-begun
		})
		return false
	}}, []string{event.SessionContextDetached.Name()}, func(context.Context, event.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()

	id := w.create() // its feed has written session_created, and ends
	arrived.Wait()
	if reader == nil {
		t.Fatal("the reader got no stream")
	}
	w.say(id, "hello")
	got := slices.DeleteFunc(reader.until("turn_completed"), func(ev seen) bool { return ev.Entry == 0 })
	if got, want := types(got), "session_created message_added turn_started model_output_completed message_added turn_completed"; got != want {
		t.Errorf("the reader got %q, want %q", got, want)
	}
	reader.close()
}

// open opens the stream of a session's events at another server than the world's.
func open(t *testing.T, server *httptest.Server, id string) *follower {
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/sessions/"+id+"/events", nil)
	if err != nil {
		cancel()
		t.Errorf("NewRequest = %v, want no error", err)
		return nil
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		cancel()
		t.Errorf("GET of the events of %s = %v, want a stream", id, err)
		return nil
	}
	return &follower{t, cancel, resp, sse.NewReader(resp.Body, 8<<20)}
}
