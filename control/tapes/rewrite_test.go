package tapes_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/natstest"
)

// While all files of a session follow again, what is in the stream of them does not count before the last one is
// there: nothing of it is acknowledged.
func TestRewriteCountsAsAWhole(t *testing.T) {
	s := natstest.Start(t)
	south, north := start(t, s, "south"), start(t, s, "north")
	south.holds("sess_a")
	south.kept("sess_a", south.write("sess_a", "tapes/a.jsonl", "gen1", "gen1 one\n"))

	// A named pipe holds up whoever opens it until somebody writes to it: the tape is sent before the first one,
	// and the end after the second one.
	pipes := []string{"pipe1", "pipe2"}
	for _, name := range pipes {
		hosttest.Pipe(t, filepath.Join(south.data.Name(), name))
	}
	pass := func(name string) {
		t.Helper()
		w, err := os.OpenFile(filepath.Join(south.data.Name(), name), os.O_WRONLY, 0)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	south.mu.Lock()
	south.files["sess_a"] = []tapes.File{{Name: "tapes/a.jsonl", Generation: "gen2", Size: 9}, {Name: pipes[0]}, {Name: pipes[1]}}
	south.mu.Unlock()
	if err := south.data.WriteFile("tapes/a.jsonl", []byte("gen2 two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tape := tapes.File{Name: "tapes/a.jsonl", Generation: "gen2", Size: 9}
	south.Grew("sess_a", tape)
	pass(pipes[0])
	at := func() string {
		t.Helper()
		dir, err := north.Fetch(t.Context(), "sess_a")
		if err != nil {
			t.Fatal(err)
		}
		return north.read(dir)["tapes/a.jsonl"]
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err, got := south.Kept(now, "sess_a", tape), at(); !errors.Is(err, tapes.ErrUnavailable) || got != "gen1 one\n" {
		t.Errorf("in between: Kept() = %v, and others get %q; want that it waits, and what was there before", err, got)
	}
	pass(pipes[1])
	south.kept("sess_a", tape)
	if got := at(); got != "gen2 two\n" {
		t.Errorf("in the end others get %q", got)
	}
}
