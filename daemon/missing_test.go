package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// damagedNow lists the files that verify calls damaged, or cannot read.
func damagedNow(t *testing.T, g *Flags) (out []string) {
	t.Helper()
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(p.Data)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	_, findings, err := g.VerifyData(t.Context(), p, root)
	if err != nil {
		t.Fatalf("VerifyData: %v", err)
	}
	for _, f := range findings {
		if f.Bad() {
			out = append(out, f.File)
		}
	}
	return out
}

// OP-26: after a clean end, verify notices a tape that is gone, was emptied or has lost its
// end, although its records are whole, and no file of a surface knows the session; repair says
// in the conversation what was lost, and keeps the bytes that it takes away.
func TestTapesThatLostSomething(t *testing.T) {
	tape := filepath.Join("tapes", session.TapeName("/ws", "s2")+".jsonl")
	data := func(g *Flags) string { return filepath.Join(g.DataDir, tape) }
	for name, damage := range map[string]func(at string, content []byte) error{
		"gone":    func(at string, _ []byte) error { return os.Remove(at) },
		"emptied": func(at string, _ []byte) error { return os.Truncate(at, 0) },
		"cut at a record": func(at string, content []byte) error {
			return os.Truncate(at, int64(bytes.LastIndexByte(content[:len(content)-1], '\n')+1))
		},
		"zeros at its end": func(at string, content []byte) error {
			end := bytes.LastIndexByte(content[:len(content)-1], '\n') + 1
			clear(content[end:])
			return os.WriteFile(at, content, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := used(t)
			err := WithSessions(g, func(m *session.Manager) error { // which ends cleanly
				s, err := m.Open("s2", "/ws")
				if err == nil {
					_, err = s.Say(session.Message{Role: "assistant", Content: "done"}, "", "")
				}
				if err == nil {
					_, err = s.Note(event.Event{Kind: event.TurnWasCompleted.Name()}, event.TurnCompleted{})
				}
				return errors.Join(err, m.Index(t.Context()))
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := damagedNow(t, g); len(got) != 0 {
				t.Fatalf("before the damage, verify calls %q damaged", got)
			}
			content, err := os.ReadFile(data(g))
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(data(g), slices.Clone(content)); err != nil {
				t.Fatal(err)
			}
			if got := damagedNow(t, g); !slices.Equal(got, []string{filepath.ToSlash(tape)}) {
				t.Errorf("verify calls %q damaged, want the tape", got)
			}
			r, err := g.RepairData(t.Context())
			if err != nil || len(r.Mended) != 1 || len(r.Left) != 0 || r.Mended[0].Tape == nil || r.Mended[0].Tape.Session != "s2" || r.Mended[0].Tape.Bytes == 0 {
				t.Fatalf("RepairData = %+v, %v, want the tape of s2 mended", r, err)
			}
			if name == "zeros at its end" {
				if kept, err := os.ReadFile(filepath.Join(g.DataDir, filepath.FromSlash(r.Mended[0].Aside))); err != nil || len(kept) != len(content) {
					t.Errorf("what was there has %d bytes, %v, want all %d", len(kept), err, len(content))
				}
			}
			if text, err := os.ReadFile(data(g)); err != nil || !strings.Contains(string(text), `"name":"session/repair"`) {
				t.Errorf("the tape is %s, %v, want an entry that says what was lost", text, err)
			}
			if err := starts(t, g); err != nil {
				t.Fatalf("after the repair the start says %v", err)
			}
			if got := damagedNow(t, g); len(got) != 0 {
				t.Errorf("after the repair, verify calls %q damaged", got)
			}
		})
	}
}

// OP-26: verify sees what keeps yaya from starting: a damaged VERSION, or a restore that did
// not end; repair does not call a damaged control log mended, and says what to do.
func TestVerifySeesWhatKeepsYayaFromStarting(t *testing.T) {
	g := used(t)
	for _, name := range []string{formatFile, restoringFile} {
		at := filepath.Join(g.DataDir, name)
		before, rerr := os.ReadFile(at)
		write(t, at, "x")
		if got := damagedNow(t, g); !slices.Equal(got, []string{name}) {
			t.Errorf("verify calls %q damaged, want %s", got, name)
		}
		if rerr != nil {
			if err := os.Remove(at); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, at, string(before))
	}
	at := filepath.Join(g.DataDir, "control", "log.jsonl")
	content, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	write(t, at, string(content))
	r, err := g.RepairData(t.Context())
	if err != nil || len(r.Left) != 1 || r.Left[0].File != "control/log.jsonl" || !strings.Contains(r.Left[0].Problem, "yaya repair --control") {
		t.Errorf("RepairData = %+v, %v, want the control log left, with what to do", r, err)
	}
}
