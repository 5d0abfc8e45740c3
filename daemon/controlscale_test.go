package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/internal/journal"
)

// quickFS does not wait for the disk.
type quickFS struct{ journal.FS }

func (quickFS) SyncDir(string) error { return nil }

func (q quickFS) Open(name string, mode journal.Mode) (journal.File, error) {
	f, err := q.FS.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return quickFile{f}, nil
}

type quickFile struct{ journal.File }

func (quickFile) Sync() error { return nil }

// quickLog opens the control log of a data directory without waiting for the disk.
func quickLog(t *testing.T, dir string, segment int64) (*local.Log, *auth.Authority, func()) {
	t.Helper()
	data, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := data.OpenRoot("keys")
	if err != nil {
		t.Fatal(err)
	}
	devices, err := auth.NewAuthority(auth.AuthorityConfig{Keys: keys, Known: true})
	if err != nil {
		t.Fatal(err)
	}
	node := "k_" + devices.ServerID()[:16]
	registry := plane.New(plane.Config{KernelID: node, Epoch: devices.ServerID(), Log: zerolog.Nop()})
	log, err := local.Open(quickFS{journal.Root(data)}, local.Options{
		Node: node, Projections: []control.Projection{devices, registry}, Segment: segment, Log: zerolog.Nop(),
		Seal: &local.SealOptions{Keys: keys, FS: quickFS{journal.Root(keys)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return log, devices, func() {
		if err := errors.Join(log.Close(), keys.Close(), data.Close()); err != nil {
			t.Errorf("Close of the log and its folders = %v, want no error", err)
		}
	}
}

// OP-103, OP-31, OP-33, REL-7: whatever the history of a control log, a start reads the snapshot
// and the tail alone, and a page of the audit the segments that it is in. With
// YAYA_TEST_CHANGES=10000000 the log is at full size, and twice the goals are limits.
func TestTenMillionChanges(t *testing.T) {
	n, segment := 6_000, int64(1_000)
	full := os.Getenv("YAYA_TEST_CHANGES")
	if full != "" {
		var err error
		if n, err = strconv.Atoi(full); err != nil {
			t.Fatal(err)
		}
		segment = 0 // as it is without a test
	}
	g := newFlags(t)
	if err := starts(t, g); err != nil {
		t.Fatal(err)
	}
	log, _, end := quickLog(t, g.DataDir, segment)
	since := time.Now()
	for i := range n {
		c := control.Change{Event: "approval_answered", Actor: fmt.Sprint("device", i%7), Target: fmt.Sprint("ask_", i), Payload: map[string]any{"session_id": "s1", "tool": "shell", "response": "allow"}}
		if i%2_000 == 0 {
			c = control.Change{Event: "config_changed", Actor: "owner", Target: "strategy", Payload: map[string]any{"value": i}}
		}
		if _, err := log.Append(context.Background(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	end()
	t.Logf("%d changes were made in %v", n, time.Since(since).Round(time.Second))
	limit := func(what string, since time.Time, most time.Duration) {
		t.Helper()
		took := time.Since(since)
		t.Logf("%s: %v", what, took)
		if full != "" && took > 2*most { // other programs may be at work
			t.Errorf("%s took %v, want %v", what, took, most)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	since = time.Now()
	if _, err := Serve(ctx, g, Options{Listen: &Listen{Addr: "127.0.0.1:0"}, Started: func(Started) {
		limit("start", since, 300*time.Millisecond)
		stop()
	}}); err != nil {
		t.Fatal(err)
	}
	log, _, end = quickLog(t, g.DataDir, segment)
	defer end()
	page := func(what string, q control.Query, want int) []control.Audit {
		t.Helper()
		since := time.Now()
		got, err := control.AuditLog(t.Context(), log, q)
		most := 50 * time.Millisecond
		if q.Event+q.Actor != "" { // it reads more than it shows
			most *= 10
		}
		limit("page of the audit, "+what, since, most)
		if err != nil || len(got) != want {
			t.Fatalf("%s: %d entries, %v, want %d", what, len(got), err, want)
		}
		return got
	}
	page("the newest", control.Query{Limit: 100}, 100)
	page("in the middle", control.Query{Limit: 100, Before: int64(n / 2)}, 100)
	page("the oldest", control.Query{Limit: 100, Before: 150}, 100)
	page("of a rare event", control.Query{Limit: 3, Event: "config_changed"}, 3)
	if names, err := os.ReadDir(filepath.Join(g.DataDir, local.Segments)); err != nil || len(names) < n/12_000 || len(names) < 5 {
		t.Errorf("there are %d segments, %v, want the log in pieces", len(names), err)
	}
	first := page("of an actor", control.Query{Limit: 100, Actor: "device3"}, 100)
	if first[99].Actor != "device3" {
		t.Errorf("the page has an entry of %s, want those of device3", first[99].Actor)
	}
}
