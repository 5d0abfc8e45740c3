package tapes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a node with files of sessions.
type node struct {
	t    testing.TB
	name string
	*tapes.Tapes
	conn *nats.Conn
	data *os.Root
	lost chan string

	mu    sync.Mutex
	files map[string][]tapes.File
	// listed is called after the files of a session were listed; optional.
	listed func() error
}

func start(t testing.TB, s *server.Server, name string, more ...nats.Option) *node {
	t.Helper()
	n := &node{t: t, name: name, lost: make(chan string, 10), files: map[string][]tapes.File{}}
	var err error
	if n.data, err = os.OpenRoot(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if n.conn, err = nats.Connect("", append([]nats.Option{nats.InProcessServer(s)}, more...)...); err != nil {
		t.Fatal(err)
	}
	n.open()
	t.Cleanup(func() {
		n.stop()
		n.conn.Close()
		if err := n.data.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *node) open() {
	var err error
	n.Tapes, err = tapes.Open(n.conn, tapes.Options{
		Node: n.name, Data: n.data, Copies: func(context.Context) (int, error) { return 1, nil },
		Files: func(session string) ([]tapes.File, error) {
			n.mu.Lock()
			all, listed := append([]tapes.File(nil), n.files[session]...), n.listed
			n.mu.Unlock()
			if listed != nil {
				return all, listed()
			}
			return all, nil
		},
		Lost: func(session, by string) { n.lost <- session + " " + by },
		Log:  zerolog.Nop(),
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// stop ends the node as a crash does: it says nothing more.
func (n *node) stop() {
	if n.Tapes != nil {
		if err := n.Close(); err != nil {
			n.t.Error(err)
		}
		n.Tapes = nil
	}
}

func (n *node) holds(session string) {
	n.t.Helper()
	if err := n.Hold(n.t.Context(), session, "/work"); err != nil {
		n.t.Fatalf("%s does not hold %s: %v", n.name, session, err)
	}
}

// write adds to a file of a session that grows, or writes one that is replaced if it has no generation.
func (n *node) write(session, name, generation, text string) tapes.File {
	n.t.Helper()
	if err := n.data.MkdirAll(path.Dir(name), 0o700); err != nil {
		n.t.Fatal(err)
	}
	flag := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if generation != "" {
		flag = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := n.data.OpenFile(name, flag, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		n.t.Fatal(err)
	}
	info, err := n.data.Stat(name)
	if err != nil {
		n.t.Fatal(err)
	}
	file := tapes.File{Name: name, Generation: generation, Size: info.Size()}
	n.mu.Lock()
	all := n.files[session]
	i := 0
	for i < len(all) && all[i].Name != name {
		i++
	}
	n.files[session] = append(append(append([]tapes.File(nil), all[:i]...), all[min(i+1, len(all)):]...), file)
	n.mu.Unlock()
	if n.Tapes != nil {
		n.Grew(session, file)
	}
	return file
}

func (n *node) kept(session string, f tapes.File) {
	n.t.Helper()
	if err := n.Kept(n.t.Context(), session, f); err != nil {
		n.t.Fatal(err)
	}
}

// takes has a node take a session over, and returns what it got, by the names of the files.
func (n *node) takes(session string) map[string]string {
	n.t.Helper()
	dir, err := n.Takeover(n.t.Context(), session, func(string) error { return nil })
	if err != nil {
		n.t.Fatalf("%s does not take %s over: %v", n.name, session, err)
	}
	return n.read(dir)
}

func (n *node) read(dir string) map[string]string {
	n.t.Helper()
	got := map[string]string{}
	var walk func(string)
	walk = func(at string) {
		f, err := n.data.Open(at)
		if err != nil {
			n.t.Fatal(err)
		}
		entries, err := f.ReadDir(-1)
		if err = errors.Join(err, f.Close()); err != nil {
			n.t.Fatal(err)
		}
		for _, e := range entries {
			if p := path.Join(at, e.Name()); e.IsDir() {
				walk(p)
			} else if b, err := n.data.ReadFile(p); err != nil {
				n.t.Fatal(err)
			} else {
				got[strings.TrimPrefix(p, dir+"/")] = string(b)
			}
		}
	}
	walk(dir)
	return got
}

// A session of a node that has died goes on elsewhere, with all that was kept, and not before.
func TestTakeover(t *testing.T) {
	s := natstest.Start(t)
	south, north := start(t, s, "south"), start(t, s, "north")
	south.holds("sess_a")
	var text strings.Builder
	text.WriteString(`{"epoch":"gen1"}` + "\n")
	south.write("sess_a", "tapes/a.jsonl", "gen1", text.String())
	for i := range 200 { // more than one message has
		line := fmt.Sprint(i, strings.Repeat("x", 4000), "\n")
		text.WriteString(line)
		south.kept("sess_a", south.write("sess_a", "tapes/a.jsonl", "gen1", line))
	}
	south.write("sess_a", "sessions/sess_a/session.json", "", `{"old":true}`)
	south.write("sess_a", "sessions/sess_a/session.json", "", `{"new":true}`)
	picture := make([]byte, 600<<10)
	for i := range picture {
		picture[i] = byte(rand.Uint32()) //nolint:gosec // any bytes
	}
	south.write("sess_a", "sessions/sess_a/attachments/p", "", string(picture))
	late := south.write("sess_a", "tapes/a.jsonl", "gen1", "late\n")
	south.kept("sess_a", late)

	err := north.Hold(t.Context(), "sess_a", "/work")
	if e, is := errors.AsType[*tapes.ElsewhereError](err); !is || e.Node != "south" {
		t.Fatalf("while south runs: %v", err)
	}
	if _, err := north.Takeover(t.Context(), "sess_a", func(string) error { return nil }); err == nil {
		t.Fatal("a session was taken from a node that runs")
	}
	eventually.True(t, "the files are copied", func() bool {
		is, err := north.Copied(t.Context(), "sess_a", nil)
		return err == nil && is
	})
	south.stop()
	no := errors.New("not here")
	if _, err := north.Takeover(t.Context(), "sess_a", func(dir string) error {
		if dir != "/work" {
			t.Errorf("workspace %q", dir)
		}
		return no
	}); !errors.Is(err, no) {
		t.Fatalf("where it may not: %v", err)
	}
	got := north.takes("sess_a")
	if got["tapes/a.jsonl"] != text.String()+"late\n" || got["sessions/sess_a/session.json"] != `{"new":true}` || len(got) != 3 {
		t.Errorf("%d files arrived, the tape with %d bytes", len(got), len(got["tapes/a.jsonl"]))
	}
	if !bytes.Equal([]byte(got["sessions/sess_a/attachments/p"]), picture) {
		t.Error("the attachment differs")
	}
	north.holds("sess_a")

	south.open() // and learns that it has lost it
	err = south.Hold(t.Context(), "sess_a", "/work")
	if e, is := errors.AsType[*tapes.ElsewhereError](err); !is || e.Node != "north" {
		t.Fatalf("when it is back: %v", err)
	}
	if _, err := south.Takeover(t.Context(), "sess_x", func(string) error { return nil }); !errors.Is(err, tapes.ErrUnknown) {
		t.Errorf("an unknown session: %v", err)
	}
}
