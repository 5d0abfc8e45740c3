package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// slowTransport takes a notification only when it is let.
type slowTransport struct {
	transport
	let  chan struct{}
	sent []string
}

func (s *slowTransport) send(ctx context.Context, msg []byte) error {
	select {
	case <-s.let:
		s.sent = append(s.sent, string(msg))
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A client that floods its server with notifications occupies one goroutine and a
// bounded queue; what is dropped is counted and told; what is sent is in order.
func TestNotificationsOfClientsAreBounded(t *testing.T) {
	for _, era := range []servers.Era{"", servers.EraLegacy} { // of a process, over HTTP
		synctest.Test(t, func(t *testing.T) {
			slow := &slowTransport{let: make(chan struct{})}
			p := New(Config{Server: servers.Server{Name: "srv"}})
			p.work = new(workgroup.Group)
			s := newSession(p, tenant{client: "mine"}, nil)
			s.t = slow
			p.sessions = map[place]*slot{{"mine", era}: {s: s}}
			kept := 0
			for i := range 1000 {
				if p.Notify("mine", "notifications/x", fmt.Appendf(nil, `{"n":%d}`, i)) {
					kept++
				}
				synctest.Wait() // the first one is being sent
			}
			if want := maxClientNotes + 1; kept != want || p.stats.dropped.Load() != uint64(1000-want) {
				t.Errorf("era %q: %d of 1000 were kept and %d counted as dropped, want %d kept", era, kept, p.stats.dropped.Load(), want)
			}
			if p.Notify("mine", "notifications/x", []byte(`{"n":64}`)) {
				t.Errorf("era %q: a full queue takes what its last one says", era)
			}
			if !p.Notify("nobody", "notifications/x", []byte(`{}`)) {
				t.Errorf("era %q: a client without a session is told that it floods", era)
			}
			close(slow.let)
			synctest.Wait()
			var want []string
			for i := range maxClientNotes + 1 {
				want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}`, i))
			}
			if !slices.Equal(slow.sent, want) {
				t.Errorf("era %q: got\n%s\nwant\n%s", era, strings.Join(slow.sent, "\n"), strings.Join(want, "\n"))
			}
			// Large ones share a budget of bytes; one alone is sent.
			slow.let = make(chan struct{})
			large := func(i int) bool {
				defer synctest.Wait()
				return p.Notify("mine", "notifications/x", fmt.Appendf(nil, `{"n":%d,"x":%q}`, i, strings.Repeat("x", maxClientNoteBytes)))
			}
			if !large(1) || !large(2) || large(3) {
				t.Errorf("era %q: notifications of a megabyte are not bounded", era)
			}
			s.cancel()
			p.work.Close()
		})
	}
}

// Only news that says nothing but "ask again" is held once: of others, two that are
// equal are two.
func TestEqualNotificationsOfClients(t *testing.T) {
	for method, want := range map[string]int{noteRootsChanged: 2, "notifications/pressed": 4} {
		synctest.Test(t, func(t *testing.T) {
			slow := &slowTransport{let: make(chan struct{})}
			p := New(Config{Server: servers.Server{Name: "srv"}})
			p.work = new(workgroup.Group)
			s := newSession(p, tenant{client: "mine"}, nil)
			s.t = slow
			p.sessions = map[place]*slot{{name: "mine"}: {s: s}}
			for range 4 {
				if !p.Notify("mine", method, []byte(`{}`)) {
					t.Errorf("%s: there is no room", method)
				}
				synctest.Wait() // the first one is being sent
			}
			close(slow.let)
			synctest.Wait()
			if len(slow.sent) != want {
				t.Errorf("%s: 4 equal ones were sent %d times, want %d", method, len(slow.sent), want)
			}
			s.cancel()
			p.work.Close()
		})
	}
}
