package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// remembers is a memory that answers with texts after a time.
func remembers(name, kind string, after time.Duration, texts ...string) *fake {
	f := of(plugin.Memory, name, "memory.query", "memory.write")
	f.m.MemoryKind = kind
	f.onEvent = func(ctx context.Context, ev event.Event, c plugin.Context) error {
		if ev.Kind != "memory.query" {
			return nil
		}
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return ctx.Err()
		}
		r := event.MemoryResult{Request: event.Request{RequestID: ev.ID}}
		for i, text := range texts {
			r.Hits = append(r.Hits, event.MemoryEntry{ID: fmt.Sprintf("%s-%d", name, i), Text: text})
		}
		return c.Emit("memory.result", ev.SessionID, r)
	}
	return f
}

func failing(name string, err error) *fake {
	f := of(plugin.Memory, name, "memory.query")
	f.onEvent = func(context.Context, event.Event, plugin.Context) error { return err }
	return f
}

// recall asks the memories, and returns the texts and how long it took.
func (w *world) recall(k int) (texts []string, took time.Duration, err error) {
	w.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	ev, err := bus.Request(ctx, w.bus.Kernel(), event.MemoryQueried, "s1", event.MemoryQuery{Query: "q", K: k}, event.MemoryAnswered.Kind())
	if err != nil {
		return nil, time.Since(began), err
	}
	r, ok := ev.Payload.(event.MemoryResult)
	if !ok || ev.Kind != "memory.result" || ev.SessionID != "s1" || r.RequestID == "" {
		w.t.Errorf("got %+v, want an answer to the query", ev)
	}
	for _, h := range r.Hits {
		texts = append(texts, h.Text)
	}
	return texts, time.Since(began), nil
}

// Y-155: the answers of all memories count: of both terms, in turns, whoever answers first. One
// that fails or hangs costs a bounded time, and no answer of the others.
func TestMemories(t *testing.T) {
	never := time.Hour
	for _, c := range []struct {
		name     string
		memories []*fake
		k        int
		want     string
		took     time.Duration
		err      string
	}{
		{"one", []*fake{remembers("a", "long-term", time.Second, "a0", "a1")}, 5, "a0 a1", time.Second, ""},
		{"one that hangs", []*fake{remembers("a", "long-term", never)}, 5, "", 5 * time.Second, "deadline"},
		{"one that fails", []*fake{failing("a", errors.New("no disk"))}, 5, "", 0, "plugin a failed: no disk"},
		{"a slow one", []*fake{remembers("a", "long-term", 3*time.Second, "a0")}, 5, "a0", 3 * time.Second, ""},
		{"the short term first", []*fake{remembers("a", "long-term", 0, "a0", "a1"), remembers("b", "short-term", time.Second, "b0", "b1")}, 5, "b0 a0 b1 a1", time.Second, ""},
		{"three", []*fake{remembers("a", "long-term", time.Second, "a0", "a1", "a2"), remembers("b", "long-term", 0, "b0"), remembers("c", "long-term", 0, "c0", "c1")}, 5, "a0 b0 c0 a1 c1", time.Second, ""},
		{"the same text", []*fake{remembers("a", "long-term", 0, "blue  sky", "a1"), remembers("b", "long-term", 0, "blue sky", "b1")}, 5, "blue  sky a1 b1", 0, ""},
		{"too many", []*fake{remembers("a", "long-term", 0, "a0", "a1", "a2"), remembers("b", "long-term", 0, "b0", "b1")}, 3, "a0 b0 a1", 0, ""},
		{"nothing", []*fake{remembers("a", "long-term", 0), remembers("b", "long-term", 0)}, 3, "", 0, ""},
		{"one fails", []*fake{failing("a", errors.New("no disk")), remembers("b", "long-term", time.Second, "b0")}, 3, "b0", time.Second, ""},
		{"one fails last", []*fake{remembers("b", "long-term", 0, "b0"), failing("a", errors.New("no disk"))}, 3, "b0", 0, ""},
		{"both fail", []*fake{failing("a", errors.New("no disk")), failing("b", errors.New("no license"))}, 3, "", 0, "no license"},
		{"one hangs", []*fake{remembers("a", "long-term", never), remembers("b", "long-term", time.Second, "b0")}, 3, "b0", 2 * time.Second, ""},
		{"one hangs and one is slow", []*fake{remembers("a", "long-term", never), remembers("b", "long-term", 3*time.Second, "b0")}, 3, "b0", 3 * time.Second, ""},
		{"both hang", []*fake{remembers("a", "long-term", never), remembers("b", "long-term", never)}, 3, "", 5 * time.Second, "deadline"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for _, m := range c.memories {
					w.Load(t.Context(), true, m)
				}
				got, took, err := w.recall(c.k)
				if strings.Join(got, " ") != c.want || took != c.took || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %q after %v, %v; want %q after %v, %q", got, took, err, c.want, c.took, c.err)
				}
			})
		})
	}
}

// MIS-5: memories of a folder stay there, and a session does not get its own words, whether a memory knows of that or
// not.
func TestMemoriesOfFolders(t *testing.T) {
	entry := func(text string, meta ...string) event.MemoryEntry {
		e := event.MemoryEntry{Text: text, Meta: map[string]string{}}
		for i := 0; i < len(meta); i += 2 {
			e.Meta[meta[i]] = meta[i+1]
		}
		return e
	}
	knowsNothing := func(name string) *fake {
		f := of(plugin.Memory, name, "memory.query")
		f.onEvent = func(_ context.Context, ev event.Event, c plugin.Context) error {
			return c.Emit("memory.result", ev.SessionID, event.MemoryResult{Request: event.Request{RequestID: ev.ID}, Hits: []event.MemoryEntry{
				entry("of none"), entry("of none, own", "session_id", "s1"), entry("of none, its agent's", "session_id", "s1::agent::a"),
				entry("of a", "folder", "/a", "session_id", "s2"), entry("of a, own", "folder", "/a", "session_id", "s1"), entry("of b", "folder", "/b"),
			}})
		}
		return f
	}
	for folder, want := range map[string]string{"": "of none", "/a": "of a", "/b": "of b", "/c": ""} {
		for _, names := range [][]string{{"one"}, {"one", "two"}} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for _, name := range names {
					w.Load(t.Context(), true, knowsNothing(name))
				}
				ev, err := bus.Request(t.Context(), w.bus.Kernel(), event.MemoryQueried, "s1", event.MemoryQuery{Query: "q", K: 9, Folder: folder}, event.MemoryAnswered.Kind())
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, h := range ev.Payload.(event.MemoryResult).Hits {
					got = append(got, h.Text)
				}
				if strings.Join(got, "|") != want {
					t.Errorf("%d memories, in %q: %q, want %q", len(names), folder, got, want)
				}
			})
		}
	}
}

// A memory answers once, for itself; a plugin of another category, or that does not listen, is not waited for.
func TestMemoriesThatDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		twice := of(plugin.Memory, "twice", "memory.query")
		twice.onEvent = func(_ context.Context, ev event.Event, c plugin.Context) error {
			for i := range 3 {
				if err := c.Emit("memory.result", ev.SessionID, event.MemoryResult{Hits: []event.MemoryEntry{{Text: fmt.Sprintf("t%d", i)}}, Request: event.Request{RequestID: ev.ID}}); err != nil {
					return err
				}
			}
			return nil
		}
		stranger := of(plugin.Skill, "stranger", "memory.query")
		stranger.onEvent = func(_ context.Context, ev event.Event, c plugin.Context) error {
			return c.Emit("memory.result", ev.SessionID, event.MemoryResult{Hits: []event.MemoryEntry{{Text: "mine"}}, Request: event.Request{RequestID: ev.ID}})
		}
		w.Load(t.Context(), true, stranger, of(plugin.Memory, "silent", "memory.write"), twice, remembers("slow", "long-term", time.Second, "s0"))
		got, took, err := w.recall(5)
		if strings.Join(got, " ") != "t0 s0" || took != time.Second || err != nil {
			t.Errorf("got %q after %v, %v; want one answer of each memory", got, took, err)
		}
	})
}

// The answer of a memory is bounded, and leaves room for the others.
func TestMemoriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var many []string
		for i := range 200 {
			many = append(many, fmt.Sprintf("m%d", i))
		}
		large := remembers("large", "long-term", 0, strings.Repeat("x", 1<<20), "l1")
		w.Load(t.Context(), true, remembers("many", "long-term", 0, many...), large)
		got, _, err := w.recall(1000)
		if err != nil || len(got) != 50 || got[1] != "l1" && got[2] != "l1" {
			t.Errorf("got %d entries, %.40q, %v; want 50, with one of the other memory, and not that of a megabyte", len(got), got, err)
		}
	})
}

// A skill that asks gets the merged answer, too.
func TestSkillAsksMemories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		skill := of(plugin.Skill, "asks")
		w.Load(t.Context(), true, skill, remembers("a", "long-term", 0, "a0"), remembers("b", "long-term", time.Second, "b0"))
		ev, err := skill.ctx.Request(t.Context(), "memory.query", "s1", []byte(`{"query":"q","k":5}`))
		r, _ := ev.Payload.(event.MemoryResult)
		if err != nil || len(r.Hits) != 2 || ev.Source != event.KernelSource {
			t.Errorf("got %+v, %v; want both answers, from the kernel", ev, err)
		}
	})
}
