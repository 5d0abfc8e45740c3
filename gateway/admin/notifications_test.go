package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/admin"
)

// troubled has servers in these states, and what waits.
type troubled struct {
	*fakeServers
	all     []admin.Server
	waiting []admin.Waiting
	err     error
}

func (f *troubled) List() []admin.Server { return f.all }

func (f *troubled) Waiting() ([]admin.Waiting, error) { return f.waiting, f.err }

func (w *world) notifications() []admin.Notification {
	w.t.Helper()
	var out []admin.Notification
	if err := json.Unmarshal([]byte(w.want("GET", "/api/notifications", "", 200, "")), &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// read marks notifications as read.
func (w *world) read(ids ...string) {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		w.t.Fatal(err)
	}
	w.want("POST", "/api/notifications/read", string(raw), 204, "")
}

// Notifications are listed by urgency, to those who may see them, and read once for all.
func TestNotifications(t *testing.T) {
	w := newWorld(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &troubled{
		fakeServers: new(fakeServers),
		all: []admin.Server{
			{Name: "good", State: "ready"},
			{Name: "bad", State: "failed", Reason: "it ended", Restarts: 3, History: []admin.ServerState{{State: "ready", Since: at}, {State: "failed", Since: at.Add(time.Second)}}},
		},
		waiting: []admin.Waiting{{Server: "moved", Tools: []admin.WaitingTool{{Name: "a"}, {Name: "b"}}, Instructions: "+x", Digest: "d1"}},
	}
	w.admin.Servers = f
	w.rebuild()
	names := func() (out []string) {
		for _, n := range w.notifications() {
			out = append(out, fmt.Sprint(n.Kind, " ", n.Name, " ", n.State, " ", n.Count, " ", n.Read))
		}
		return out
	}
	if got, want := names(), []string{"server bad failed 3 false", "trust moved changed 3 false"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	entries := w.log.State().Last
	bad := w.notifications()[0]
	if strings.Contains(bad.ID, "bad") || bad.Detail != "it ended" {
		t.Errorf("got %+v, want its reason, and an id without its name", bad)
	}
	w.read(bad.ID, "server-0000000000000000", "x")
	w.read(bad.ID)
	if got := w.log.State().Last; got != entries+1 {
		t.Errorf("the log has %d more entries, want 1: what is read or unknown writes none", got-entries)
	}
	if got := names(); got[0] != "server bad failed 3 true" || got[1] != "trust moved changed 3 false" {
		t.Errorf("got %q, want the server alone read", got)
	}

	// It tries again, and fails again: that is the same. After it was ready it is another one.
	f.all[1].History = append(f.all[1].History, admin.ServerState{State: "starting", Since: at.Add(2 * time.Second)}, admin.ServerState{State: "failed", Since: at.Add(3 * time.Second)})
	if got := names(); got[0] != "server bad failed 3 true" {
		t.Errorf("got %q, want it still read", got)
	}
	f.all[1].History = append(f.all[1].History, admin.ServerState{State: "ready", Since: at.Add(4 * time.Second)}, admin.ServerState{State: "failed", Since: at.Add(5 * time.Second)})
	if got := names(); got[0] != "server bad failed 3 false" {
		t.Errorf("got %q, want a new notification", got)
	}

	// Pins that cannot be read hide nothing else.
	f.waiting, f.err = nil, errors.New("the pins cannot be read")
	if got := names(); len(got) != 1 {
		t.Errorf("got %q, want the server", got)
	}

	w.who = auth.ServerNamed("evil")
	if got := names(); len(got) != 0 {
		t.Errorf("a caller without config:read gets %q, want nothing", got)
	}
}

// Marks of what was read are bounded, and survive a snapshot of the log.
func TestReadsAreBounded(t *testing.T) {
	r := new(admin.Reads)
	apply := func(ids ...string) {
		t.Helper()
		raw, err := json.Marshal(map[string]any{"ids": ids})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(control.Entry{Event: "notifications_read", Payload: raw}); err != nil {
			t.Fatal(err)
		}
	}
	saved := func(r *admin.Reads) (ids []string) {
		t.Helper()
		raw, err := r.Save()
		if err != nil {
			t.Fatal(err)
		}
		var s struct{ IDs []string }
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		return s.IDs
	}
	for i := range 1003 {
		apply(fmt.Sprint("a-", i), fmt.Sprint("a-", i))
	}
	apply("", strings.Repeat("x", 65))
	ids := saved(r)
	if len(ids) != 1000 || ids[0] != "a-3" || ids[999] != "a-1002" {
		t.Errorf("got %d from %q to %q, want the last 1000", len(ids), ids[0], ids[len(ids)-1])
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprint("b-", i)
	}
	apply(many...)
	if ids = saved(r); ids[999] != "b-199" {
		t.Errorf("the last one is %q, want b-199: one entry marks 200", ids[999])
	}
	raw, err := r.Save()
	if err != nil {
		t.Fatal(err)
	}
	other := new(admin.Reads)
	if err := other.Restore(raw); err != nil || !slices.Equal(saved(other), ids) {
		t.Errorf("Restore = %v with %d ids, want the same", err, len(saved(other)))
	}
	if err := r.Apply(control.Entry{Event: "notifications_read", Payload: json.RawMessage(`{"ids":1}`)}); err == nil {
		t.Error("Apply of a damaged entry = nil, want an error")
	}
}
