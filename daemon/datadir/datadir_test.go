package datadir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/daemon/datadir"
	"github.com/yaya-ai/yaya/internal/certs/certstest"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a data directory with a file of each kind.
type place struct {
	t    *testing.T
	dir  string
	root *os.Root
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	p := &place{t, dir, root}
	for name, text := range map[string]string{
		"config.json": `{"version":1,"values":{"strategy":"react"}}`, "secrets.sealed": `{"version":1}`, "permits.json": "[]", "tokens-used.json": "{}",
		"eras.json": "{}", "catalog/0123.json": "{}", "trust/0123.json": `{"source":{"server":"one"},"tools":{}}`, "folders/trusted.json": `{"version":1,"folders":{}}`, "folders/unreviewed.json": `{"folders":{}}`,
		"keys/remotes/x.json": "{}", "certs/a/x.retry.json": "{}", "oauth/x.json": "{}", "sessions/s1/events.ndjson": "{}\n{}\n", "chat-history.ndjson": "{}\n{}\n",
		"traffic/0000000000000001.ndjson": "{}\n{\"id\":2", "traffic/days/2026-01-01.json": "{}", "yaya.lock": "1", "traffic/lock": "", "notes.txt": "mine",
	} {
		p.write(name, []byte(text))
	}
	cert, key := certstest.SelfSigned(t, t.TempDir(), 1)
	pair := append(p.must(os.ReadFile(key)), p.must(os.ReadFile(cert))...)
	p.write("keys/self-signed.pem", pair)
	p.write("certs/a/x.pem", pair)
	p.write("certs/a/account.key", p.must(os.ReadFile(key)))
	memory := memory_sqlite.New(filepath.Join(dir, "memory.db"))
	for _, text := range []string{"red", "green", "blue"} {
		if err := memory.OnEvent(t.Context(), event.Event{Payload: event.MemoryWrite{Entry: event.MemoryEntry{Text: text}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := memory.OnUnload(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p.sessions(func(m *session.Manager) {
		s, err := m.Open("s1", "/ws")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Say(session.Message{Role: "user", Content: "hello"}, "", ""); err != nil {
			t.Fatal(err)
		}
		sn, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(map[string]any{"id": "s1", "workspace_path": "/ws", "counted": sn.Cursor()})
		if err != nil {
			t.Fatal(err)
		}
		p.write("sessions/s1/session.json", raw)
	})
	return p
}

func (p *place) must(data []byte, err error) []byte {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

func (p *place) write(name string, data []byte) {
	p.t.Helper()
	at := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(at, data, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) sessions(f func(*session.Manager)) {
	p.t.Helper()
	m, err := session.OpenManager(session.Config{FS: journal.Root(p.root), Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		p.t.Fatal(err)
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	f(m)
	if err := m.Close(context.Background()); err != nil {
		p.t.Errorf("Close of the sessions = %v, want no error", err)
	}
	if err := b.Close(context.Background()); err != nil {
		p.t.Errorf("Close of the bus = %v, want no error", err)
	}
}

// files are the names of all files that yaya keeps there.
func (p *place) files() (out []string) {
	p.t.Helper()
	err := filepath.WalkDir(p.dir, func(at string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(p.dir, at)
		if err == nil && e.Type().IsRegular() && !slices.Contains([]string{"yaya.lock", "traffic/lock", "notes.txt"}, name) {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *place) verify() (int, []session.Finding) {
	p.t.Helper()
	n, f, err := datadir.Verify(p.t.Context(), p.root, datadir.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	return n, f
}

// REL-13, OP-25: verify finds every file of a data directory that is damaged, and only
// that one; a repair moves it away, says what is lost, and leaves a directory that is
// whole.
func TestEveryFileIsVerifiedAndMended(t *testing.T) {
	whole := newPlace(t)
	names := whole.files()
	if n, f := whole.verify(); n != len(names) || len(f) != 0 {
		t.Fatalf("Verify = %d files, %+v, want %d and nothing", n, f, len(names))
	}
	for _, name := range names {
		for damage, spoil := range map[string]func([]byte) []byte{
			"emptied": func([]byte) []byte { return nil },
			"cut":     func(d []byte) []byte { return d[:1] },
			"garbage": func(d []byte) []byte { return bytes.Repeat([]byte{0xff}, len(d)) },
		} {
			if damage == "emptied" && strings.HasSuffix(name, ".ndjson") || damage == "emptied" && name == "memory.db" ||
				damage == "cut" && (strings.HasPrefix(name, "traffic/0") || strings.HasSuffix(name, ".ndjson")) {
				continue // as new, or as a crash leaves it
			}
			t.Run(name+" "+damage, func(t *testing.T) {
				p := newPlace(t)
				at := name // the same in each
				bad := spoil(p.must(os.ReadFile(filepath.Join(p.dir, at))))
				p.write(at, bad)
				_, f := p.verify()
				if len(f) != 1 || f[0].File != at || !f[0].Damaged {
					t.Fatalf("Verify = %+v, want %s alone", f, at)
				}
				var r datadir.Report
				p.sessions(func(m *session.Manager) {
					var err error
					if r, err = datadir.Repair(t.Context(), p.root, m, datadir.Options{}); err != nil {
						t.Fatal(err)
					}
				})
				if len(r.Mended) != 1 || len(r.Left) != 0 || r.Mended[0].File != at || r.Mended[0].Lost == "" || r.Mended[0].Reason == "" {
					t.Fatalf("Repair = %+v, want %s mended, with what is lost", r, at)
				}
				if kept := p.must(os.ReadFile(filepath.Join(p.dir, r.Mended[0].Aside))); !bytes.Equal(kept, bad) {
					t.Errorf("the damaged file was not kept: got %q", kept)
				}
				var said datadir.Report
				if err := json.Unmarshal(p.must(os.ReadFile(filepath.Join(p.dir, r.Folder, "report.json"))), &said); err != nil || len(said.Mended) != 1 {
					t.Errorf("the report says %+v, %v, want the same", said, err)
				}
				if _, f := p.verify(); len(f) != 0 {
					t.Errorf("Verify after the repair = %+v, want nothing", f)
				}
				if mine := p.must(os.ReadFile(filepath.Join(p.dir, "notes.txt"))); string(mine) != "mine" {
					t.Errorf("a file that is not yaya's was changed: %q", mine)
				}
			})
		}
	}
}

// OP-25: a repair of a directory that is whole does nothing, and leaves nothing.
func TestNothingToMend(t *testing.T) {
	p := newPlace(t)
	before := p.files()
	p.sessions(func(m *session.Manager) {
		if r, err := datadir.Repair(t.Context(), p.root, m, datadir.Options{}); err != nil || len(r.Mended)+len(r.Left) != 0 {
			t.Errorf("Repair = %+v, %v, want nothing done", r, err)
		}
	})
	if after := p.files(); !slices.Equal(after, before) {
		t.Errorf("the files are %v, want %v", after, before)
	}
}
