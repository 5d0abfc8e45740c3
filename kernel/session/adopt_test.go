package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/bus"
)

// handing is an owner that hands a session over, whose files are in a folder below the data directory.
type handing struct{ taken }

func (*handing) Takeover(context.Context, string, func(string) error) (string, error) {
	return "arriving/s/0", nil
}

// CL-04: a node that dies while it takes a session over has the session with all of its sub-agents, or does not have
// it: what it lacks of one that it has, it would remove from the cluster.
func TestAdoptIsWhole(t *testing.T) {
	from, _ := newManager(t, t.TempDir())
	if _, err := from.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	names := []string{"s"}
	for i := range 4 {
		names = append(names, fmt.Sprint("s::agent::a", i))
		if _, err := from.Fork("s", names[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string][]byte{}
	for _, name := range names {
		f, err := from.cfg.FS.Open(tapeFile(TapeName("/ws", name)), journal.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		raw := make([]byte, size)
		if err == nil {
			_, err = f.ReadAt(raw, 0)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		files[name] = raw
	}
	dead := errors.New("the node is dead")
	for step, done := 1, false; !done; step++ {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "arriving/s/0/tapes"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, raw := range files {
			if err := os.WriteFile(filepath.Join(dir, "arriving/s/0", tapeFile(TapeName("/ws", name))), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		killed := false
		disk := &journaltest.Faults{FS: journal.Root(root)}
		disk.Before = func(s journaltest.Step) error {
			if killed = killed || s.N == step; killed {
				return dead
			}
			return nil
		}
		m, err := OpenManager(Config{FS: disk, Workspace: "/ws", Owner: &handing{}, Log: zerolog.Nop()})
		if err == nil {
			b := bus.New(bus.Config{Recorder: m})
			m.Bind(b)
			_, err = m.Adopt(t.Context(), "s")
			_ = errors.Join(m.Close(t.Context()), b.Close(t.Context())) // of a disk that fails
		}
		if done = !killed; done && err != nil {
			t.Fatal(err)
		}
		there := func(name string) bool {
			_, err := root.Stat(tapeFile(TapeName("/ws", name)))
			return err == nil
		}
		for _, name := range names {
			if there("s") && !there(name) {
				t.Errorf("step %d: the session is here without %s", step, name)
			}
		}
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
