package memory_sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	t    *testing.T
	bus  *bus.Bus
	reg  *plugin.Registry
	stop func()
}

func newWorld(t *testing.T, dir string) *world {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, bus: bus.New(bus.Config{})}
	cfg, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	if w.reg, err = plugin.NewRegistry(plugin.Config{Bus: w.bus, Config: cfg, Tools: new(tool.Registry), State: root, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	w.reg.Load(t.Context(), true, memory_sqlite.New(filepath.Join(dir, "a #?%.db")))
	stopped := false
	w.stop = func() {
		if !stopped {
			stopped = true
			if err := errors.Join(w.reg.Stop(), w.bus.Close(context.Background()), root.Close()); err != nil {
				t.Errorf("Stop of the plugins and Close of the bus = %v, want no error", err)
			}
		}
	}
	t.Cleanup(w.stop)
	return w
}

func (w *world) write(e event.MemoryEntry) {
	w.t.Helper()
	if _, err := bus.Publish(w.bus.Kernel(), event.MemoryWritten, "s1", event.MemoryWrite{Entry: e}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) query(q string, k int) []event.MemoryEntry {
	w.t.Helper()
	return w.ask("s1", event.MemoryQuery{Query: q, K: k})
}

func (w *world) ask(session string, q event.MemoryQuery) []event.MemoryEntry {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	ev, err := bus.Request(ctx, w.bus.Kernel(), event.MemoryQueried, session, q, event.MemoryAnswered.Kind())
	if err != nil {
		w.t.Fatal(err)
	}
	return ev.Payload.(event.MemoryResult).Hits
}

func ids(es []event.MemoryEntry) (out []string) {
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

// Y-38, Y-39, Y-40, Y-12: a memory is found by its words, the best match
// first, even after a restart.
func TestRanking(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "a #?%.db")); err == nil {
		t.Error("the database was opened before it was needed")
	}
	if got := w.query("anything", 5); got == nil || len(got) != 0 {
		t.Errorf("got %v, want an empty list that is not nil", got)
	}
	w.write(event.MemoryEntry{ID: "coffee", Text: "The user likes coffee, black coffee, in the morning"})
	w.write(event.MemoryEntry{ID: "tea", Text: "Tea is for the afternoon; coffee is not", Meta: map[string]string{"session_id": "s0"}})
	w.write(event.MemoryEntry{ID: "cafe", Text: "Das Café schließt um acht"})
	w.write(event.MemoryEntry{Text: "Deployments happen on Tuesdays"})
	w.write(event.MemoryEntry{ID: "tea", Text: "Tea at four o'clock; no coffee then", Meta: map[string]string{"session_id": "s2"}}) // replaced
	check := func() {
		t.Helper()
		if got := ids(w.query("Does he want black coffee?", 5)); !slices.Equal(got, []string{"coffee", "tea"}) {
			t.Errorf("got %v, want [coffee tea]", got)
		}
		if got := w.query("coffee", 1); len(got) != 1 {
			t.Errorf("got %v, want one memory", got)
		}
		if got := w.query("cafe", 5); len(got) != 1 || got[0].ID != "cafe" {
			t.Errorf("got %v, want the memory cafe", got)
		}
		if got := w.query("four", 5); len(got) != 1 || got[0].Meta["session_id"] != "s2" {
			t.Errorf("got %+v, want one memory of the session s2", got)
		}
		if got := w.query("afternoon", 5); len(got) != 0 {
			t.Errorf("what was replaced is still found: %v", got)
		}
		if got := w.query("tuesdays", 5); len(got) != 1 || !strings.HasPrefix(got[0].ID, "mem_") {
			t.Errorf("got %v, want one memory with an id that begins with mem_", got)
		}
	}
	check()
	w.stop()
	w = newWorld(t, dir)
	check()
	st, err := os.Stat(filepath.Join(dir, "a #?%.db"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

// MIS-5: memories of a folder are found there alone, and not by the session that has said them, whether rare words
// rank them or common ones, however many memories others have.
func TestFolders(t *testing.T) {
	w := newWorld(t, t.TempDir())
	meta := func(folder, session string) map[string]string {
		return map[string]string{"folder": folder, "session_id": session}
	}
	w.write(event.MemoryEntry{ID: "a1", Text: "common rare", Meta: meta("/a", "one")})
	w.write(event.MemoryEntry{ID: "a2", Text: "common too", Meta: meta("/a", "two")})
	w.write(event.MemoryEntry{ID: "a3", Text: "common rare three", Meta: meta("/a", "three::agent::x")})
	w.write(event.MemoryEntry{ID: "none", Text: "common and rare", Meta: map[string]string{"session_id": "one"}})
	for i := range 400 { // more than the newest that a common word has
		w.write(event.MemoryEntry{ID: fmt.Sprint("b", i), Text: fmt.Sprint("common rare b", i), Meta: meta("/b", "b")})
	}
	w.write(event.MemoryEntry{ID: "moved", Text: "common moved", Meta: meta("/b", "b")})
	w.write(event.MemoryEntry{ID: "moved", Text: "common moved", Meta: meta("/c", "c")}) // replaced
	w.query("", 1)                                                                       // the session's events are handled in their order: all is written
	for _, tt := range []struct {
		session, query, folder string
		want                   []string
	}{
		{"s", "rare", "/a", []string{"a1", "a3"}},
		{"s", "common", "/a", []string{"a1", "a2", "a3"}},
		{"one", "common", "/a", []string{"a2", "a3"}},
		{"three", "common", "/a", []string{"a1", "a2"}},
		{"one::agent::y", "rare", "/a", []string{"a3"}},
		{"s", "common rare", "", []string{"none"}},
		{"one", "common rare", "", nil},
		{"s", "rare", "/a/", nil},
		{"s", "rare", `/a" OR scope : "x`, nil},
		{"s", "infolder scope", "", nil},
		{"s", "moved", "/b", nil},
		{"s", "moved", "/c", []string{"moved"}},
	} {
		got := ids(w.ask(tt.session, event.MemoryQuery{Query: tt.query, K: 5, Folder: tt.folder}))
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q in %q, asked by %s: %v, want %v", tt.query, tt.folder, tt.session, got, tt.want)
		}
	}
}

// A query is text: nothing in it is an instruction to the database.
func TestHostileQueries(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.write(event.MemoryEntry{ID: "a", Text: "plain words NEAR here"})
	for q, want := range map[string]int{
		`"unbalanced`: 0, `plain AND`: 1, `NEAR(plain here, 5)`: 1, `text:plain`: 1, `plain*`: 1, `'; DROP TABLE memories; --`: 0, `-plain`: 1, "": 0, " \x00 ": 0, "()": 0,
		strings.Repeat("plain ", 10000): 1, strings.Repeat("x", 1<<20): 0,
	} {
		if got := w.query(q, 5); len(got) != want {
			t.Errorf("%.30q: got %v, want %d memories", q, got, want)
		}
	}
	if got := w.query("plain", 0); len(got) != 0 {
		t.Errorf("k=0: got %v", got)
	}
}

// Bounds: a memory that is too long is refused, and hits are counted.
func TestBounds(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.write(event.MemoryEntry{Text: strings.Repeat("x", memory_sqlite.MaxText+1)})
	for i := range 60 {
		w.write(event.MemoryEntry{Text: fmt.Sprint("same words ", i)})
	}
	if got := w.query("same", 1000); len(got) != memory_sqlite.MaxHits {
		t.Errorf("got %d, want %d", len(got), memory_sqlite.MaxHits)
	}
}

// REL-8, OP-53: in a memory that is larger than a recall looks at, rare words decide, common words
// alone bring the newest entries, those first that have more of the words, and no entry comes twice.
func TestRecallIsBounded(t *testing.T) {
	dir := t.TempDir()
	fill(t, filepath.Join(dir, "a #?%.db"), 5000)
	w := newWorld(t, dir)
	for _, tc := range []struct {
		query string
		k     int
		want  []string
	}{
		{"what is number17 about", 1, []string{"m17"}},              // old, and found by its rare word
		{"about", 3, []string{"m4999", "m4998", "m4997"}},           // in all of them
		{"what about even", 3, []string{"m4998", "m4996", "m4994"}}, // even tells more than what and about
		{"number17 number23 about", 4, []string{"m23", "m17", "m4999", "m4998"}},
		{"number4999 about", 2, []string{"m4999", "m4998"}},
		{"nowhere", 3, nil},
	} {
		if got := ids(w.query(tc.query, tc.k)); !slices.Equal(got, tc.want) {
			t.Errorf("query(%q, %d) = %v, want %v", tc.query, tc.k, got, tc.want)
		}
	}
}

// fill makes a database with so many memories.
func fill(tb testing.TB, path string, n int) {
	tb.Helper()
	p := memory_sqlite.New(path)
	if err := p.OnLoad(tb.Context(), nil); err != nil {
		tb.Fatal(err)
	}
	if d := p.Fill(tb.Context(), n); d != nil {
		tb.Fatalf("Fill = %v, want no error", d)
	}
	if err := p.OnUnload(tb.Context(), nil); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkRecall measures a recall by common words, and by common and rare ones, from 1,000,000
// memories: YAYA_MEMORIES has another number. The aim is 50 ms.
func BenchmarkRecall(b *testing.B) {
	n := 1_000_000
	if s := os.Getenv("YAYA_MEMORIES"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.Fatal(err)
		}
	}
	path := filepath.Join(b.TempDir(), "memory.db")
	fill(b, path, n)
	p := memory_sqlite.New(path)
	if err := p.OnLoad(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := p.OnUnload(context.Background(), nil); err != nil {
			b.Errorf("OnUnload = %v, want no error", err)
		}
	})
	for name, query := range map[string]string{
		"one common word": "about", "a sentence": "what do you know about the even number17 in all of these and what is it about", "32 common words": memory_sqlite.Filler,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if hits, err := p.Recall(b.Context(), event.MemoryQuery{Query: query, K: 5}); err != nil || len(hits) != 5 {
					b.Fatalf("got %d hits, %v, want 5", len(hits), err)
				}
			}
		})
	}
}

// Two processes share one memory.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	a, b := newWorld(t, dir), newWorld(t, dir)
	a.write(event.MemoryEntry{Text: "alpha"})
	if got := a.query("alpha", 5); len(got) != 1 {
		t.Fatalf("got %v, want len(got) 1", got)
	}
	b.write(event.MemoryEntry{Text: "beta"})
	if got := b.query("alpha beta", 5); len(got) != 2 {
		t.Errorf("got %v, want both memories", got)
	}
	if got := a.query("beta", 5); len(got) != 1 {
		t.Errorf("got %v, want one memory", got)
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t, t.TempDir())
	if d := w.reg.Doctor(t.Context(), time.Second)[0]; d.Status != plugin.Healthy || d.Summary != "not opened yet" {
		t.Errorf("got %+v, want it healthy and not opened yet", d)
	}
	w.write(event.MemoryEntry{Text: "x"})
	w.query("x", 1)
	if d := w.reg.Doctor(t.Context(), time.Second)[0]; d.Status != plugin.Healthy {
		t.Errorf("got %+v, want it healthy", d)
	}
}

// OP-18, REL-7: memories that were not written again for a while are forgotten; without a
// database there is nothing to forget, and none is made.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	p := memory_sqlite.New(filepath.Join(dir, "a #?%.db"))
	if n, err := p.Forget(t.Context(), time.Now()); err != nil || n != 0 {
		t.Errorf("got %d, %v, want 0", n, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a #?%.db")); err == nil {
		t.Error("the database was made to forget")
	}
	w.write(event.MemoryEntry{ID: "tea", Text: "Tea at four"})
	if got := w.query("tea", 5); len(got) != 1 {
		t.Fatalf("got %v, want one memory", got)
	}
	for want, by := range []time.Duration{-time.Hour, time.Hour} {
		if n, err := p.Forget(t.Context(), time.Now().Add(by)); err != nil || n != want {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
	}
	if got := w.query("tea", 5); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
	if err := p.OnUnload(t.Context(), nil); err != nil {
		t.Errorf("OnUnload = %v, want no error", err)
	}
}
