package acp

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// modelled is fake with two models. The list of them waits for then, or a moment.
type modelled struct {
	*fake
	asked atomic.Int32
	then  func(n int32) chan struct{}
}

func (m *modelled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		if wait := m.then(m.asked.Add(1)); wait != nil {
			select {
			case <-wait:
			case <-time.After(200 * time.Millisecond): // it does not come
			}
		}
		m.note("models")
		_, _ = io.WriteString(w, `{"models":[{"id":"a","active":true},{"id":"b"}]}`)
		return
	case "/v1/sessions/s/events":
		m.note("events")
		select {
		case m.came <- struct{}{}:
		default:
		}
	case "/v1/sessions/s":
		_, _ = io.WriteString(w, `{"id":"s","workspace_path":"/w"}`)
		return
	}
	m.fake.ServeHTTP(w, r)
}

// USE-6: the events of a session that an editor opens follow the answer, which has the earlier state.
func TestOpenedBeforeItsEvents(t *testing.T) {
	m := &modelled{fake: &fake{}}
	m.then = func(int32) chan struct{} { return m.came }
	in, next, _ := serveEditor(t, m.fake, m)
	say(t, in, `{"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}`)
	if got := next(`"id":1`); !strings.Contains(got, `"currentValue":"a"`) {
		t.Fatalf("got %s, want the session with the model a", got)
	}
	m.more <- `{"type":"model_changed","data":{"model":"b"}}`
	if got := next("config_option_update"); !strings.Contains(got, `"currentValue":"b"`) {
		t.Errorf("got %s, want that the model is b", got)
	}
	if got := m.noted(); !slices.Equal(got, []string{"models", "events", "models"}) {
		t.Errorf("yaya was asked for %q, want the events once the answer is there", got)
	}
}

// USE-6: changes of the model are told in their order.
func TestModelsInTheirOrder(t *testing.T) {
	m := &modelled{fake: &fake{}}
	m.then = func(n int32) chan struct{} {
		if n == 2 { // of the first change: the second is there meanwhile
			return make(chan struct{})
		}
		return nil
	}
	in, next, _ := serveEditor(t, m.fake, m)
	say(t, in, `{"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}`)
	next(`"id":1`)
	m.more <- `{"type":"model_changed","data":{"model":"b"}}`
	m.more <- `{"type":"model_changed","data":{"model":"a"}}`
	for _, want := range []string{"b", "a"} {
		if got := next("config_option_update"); !strings.Contains(got, `"currentValue":"`+want+`"`) {
			t.Errorf("got %s, want that the model is %s", got, want)
		}
	}
}
