package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

// starts starts a yaya and stops it again.
func starts(t *testing.T, g *Flags) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := Serve(ctx, g, Options{Listen: &Listen{Addr: "127.0.0.1:0"}, Started: func(Started) { stop() }})
	return err
}

// used makes a data directory that a yaya has used: two sessions of which one was forked,
// memories, settings, approvals, and what a start makes.
func used(t *testing.T) *Flags {
	t.Helper()
	g := newFlags(t)
	if err := starts(t, g); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.json": `{"version":1,"values":{"strategy":"react"}}`, "permits.json": "[]", "folders/trusted.json": `{"version":1,"folders":{}}`,
		"folders/unreviewed.json": `{"seq":1,"folders":{}}`, "trust/0123456789abcdef0123456789abcdef.json": `{"source":{"server":"one"},"first_seen":"2026-01-01T00:00:00Z","identity":"one","protocol_version":"2025-06-18","tools":{}}`,
		"traffic/0000000000000001.ndjson": `{"id":1,"ts":"2026-01-01T00:00:00Z"}` + "\n", "traffic/days/2026-01-01.json": `{"day":"2026-01-01","rows":[]}`,
	} {
		write(t, filepath.Join(g.DataDir, name), text)
	}
	for range 2 { // a log that begins closes a tail of that many entries: there are segments and a snapshot
		log, devices, end := quickLog(t, g.DataDir, 5)
		if err := devices.Start(log); err != nil {
			t.Fatal(err)
		}
		if _, err := devices.RotateKeys(t.Context(), auth.LocalOwner, false); err != nil { // a key that signs tokens
			t.Fatal(err)
		}
		for i := range 6 {
			if _, err := log.Append(t.Context(), control.Change{Event: "test_event", Actor: "owner", Target: fmt.Sprint(i)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		end()
	}
	write(t, filepath.Join(g.DataDir, "sessions/s1/artifacts/art_0123456789abcdef.txt"), "a long result")
	memory := memory_sqlite.New(filepath.Join(g.DataDir, "memory.db"))
	for i := range 50 {
		ev := event.Event{Payload: event.MemoryWrite{Entry: event.MemoryEntry{Text: fmt.Sprintf("memory %d", i)}}}
		if err := memory.OnEvent(t.Context(), ev, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := memory.OnUnload(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	err := WithSessions(g, func(m *session.Manager) error {
		for _, id := range []string{"s1", "s2"} {
			s, err := m.Open(id, "/ws")
			for i := 0; i < 4 && err == nil; i++ {
				_, err = s.Say(session.Message{Role: "user", Content: fmt.Sprintf("%s says %d", id, i)}, "", "")
			}
			if err != nil {
				return err
			}
		}
		_, err := m.Fork("s1", "s3")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// said are the messages of a session.
func said(g *Flags, id string) (out []string, err error) {
	data, err := os.OpenRoot(g.DataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = data.Close() }()
	m, err := session.OpenManager(session.Config{FS: journal.Root(data), Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		return nil, err
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	defer func() { _, _ = m.Close(context.Background()), b.Close(context.Background()) }()
	err = m.View(id, "/ws", 0, func(e session.Entry) error {
		if e.Kind == session.KindMessage {
			out = append(out, string(e.Payload))
		}
		return nil
	})
	return out, err
}

// places is at how many places of a file each damage is tried; make data tries 100.
func places(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("YAYA_TEST_PLACES"))
	if err != nil {
		return 2
	}
	return n
}

// OP-26, OP-28: each file of a data directory is flipped, cut and emptied at many places. yaya
// starts, or names the command that mends it; after that command it starts, verify finds
// nothing, other conversations are whole, and the report names what was lost.
func TestAnyDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	template := used(t)
	whole := map[string][]string{}
	for _, id := range []string{"s1", "s2", "s3"} {
		var err error
		if whole[id], err = said(template, id); err != nil || len(whole[id]) != 4 {
			t.Fatalf("%s has %q, %v, want four messages", id, whole[id], err)
		}
	}
	var names []string
	err := filepath.WalkDir(template.DataDir, func(at string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(template.DataDir, at)
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(name, "lock") {
			names = append(names, name)
		}
		return err
	})
	has := func(part string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, part) })
	}
	if err != nil || len(names) < 12 || !has(local.Segments) || !has(local.StateFile) || !has("keys/token-") || !has("tapes/.index/") || !has("sessions/") {
		t.Fatalf("the files are %q, %v, want one of each kind", names, err)
	}
	n := places(t)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(template.DataDir, name))
		if err != nil || len(data) == 0 {
			continue
		}
		damages := map[string][]byte{"emptied": nil}
		for i := range n {
			at := (len(data)*i + len(data)/2) / n % len(data)
			bad := slices.Clone(data)
			bad[at] ^= 1 << (i % 8)
			damages[fmt.Sprintf("flipped at %d", at)] = bad
			damages[fmt.Sprintf("cut at %d", at)] = data[:at]
		}
		for damage, bad := range damages {
			t.Run(name+" "+damage, func(t *testing.T) { tryDamage(t, template, name, bad, whole) })
		}
		t.Run(name+" removed", func(t *testing.T) { tryDamage(t, template, name, removed, whole) })
	}
}

// removed stands for a file that is gone.
var removed = []byte("removed")

func tryDamage(t *testing.T, template *Flags, name string, bad []byte, whole map[string][]string) {
	g := newFlags(t)
	if err := os.CopyFS(g.DataDir, os.DirFS(template.DataDir)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "keys"} { // a copy has wider modes
		if err := os.Chmod(filepath.Join(g.DataDir, dir), 0o700); err != nil { //nolint:gosec // a folder
			t.Fatal(err)
		}
	}
	keys, err := filepath.Glob(filepath.Join(g.DataDir, "keys", "*"))
	for _, key := range keys {
		if err == nil {
			err = os.Chmod(key, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(bad, removed) {
		if err := os.Remove(filepath.Join(g.DataDir, name)); err != nil {
			t.Fatal(err)
		}
	} else {
		write(t, filepath.Join(g.DataDir, name), string(bad))
	}
	control := (strings.HasPrefix(name, "control/") || strings.HasPrefix(name, "keys/")) && !strings.HasPrefix(name, "keys/token-")
	first := starts(t, g)
	switch {
	case first == nil:
	case control:
		if !strings.Contains(first.Error(), "restore") && !strings.Contains(first.Error(), "yaya repair --control") {
			t.Errorf("the start says %v, want what to do", first)
		}
		r, err := g.RepairControl(t.Context())
		if err != nil || len(r.Mended) == 0 {
			t.Fatalf("RepairControl = %+v, %v, want it mended", r, err)
		}
		if err := starts(t, g); err != nil {
			t.Fatalf("after the repair the start says %v", err)
		}
		if text, err := os.ReadFile(filepath.Join(g.DataDir, "control", "log.jsonl")); err != nil || !strings.Contains(string(text), "control_restarted") {
			t.Errorf("the log does not say that it begins again: %v", err)
		}
		for id, want := range whole {
			if got, err := said(g, id); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s has %q, %v, want %q", id, got, err, want)
			}
		}
		return
	case name == "VERSION":
		if !strings.Contains(first.Error(), "echo") { // which only a person can say
			t.Errorf("the start says %v, want the command that mends the file", first)
		}
		return
	case !strings.Contains(first.Error(), "yaya repair"):
		t.Fatalf("the start says %v, want the command that mends it", first)
	}
	r, err := g.RepairData(t.Context())
	if err != nil || slices.ContainsFunc(r.Left, func(f session.Finding) bool { return f.File != name || !strings.HasPrefix(name, local.Segments) }) {
		t.Fatalf("RepairData = %+v, %v, want nothing left but a segment, which a backup may have", r, err)
	}
	if first != nil && len(r.Mended) == 0 {
		t.Errorf("the start said %v, and nothing was repaired", first)
	}
	for _, x := range r.Mended {
		if x.File != name && (x.Tape == nil || x.Tape.Session != "s3") || x.Lost == "" {
			t.Errorf("repaired %+v, want %s with what was lost", x, name)
		}
	}
	if err := starts(t, g); err != nil {
		t.Fatalf("after the repair the start says %v", err)
	}
	if got := damagedNow(t, g); len(got) > 0 {
		t.Errorf("after the repair, verify calls %q damaged", got)
	}
	for id, want := range whole {
		tape := "tapes/" + session.TapeName("/ws", id) + ".jsonl"
		got, err := said(g, id)
		switch {
		case name == tape, id == "s3" && name == "tapes/"+session.TapeName("/ws", "s1")+".jsonl": // what was verified
			if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
				t.Errorf("%s has %q, want a beginning of %q", id, got, want)
			}
		case err != nil || !slices.Equal(got, want):
			t.Errorf("%s has %q, %v, want %q", id, got, err, want)
		}
	}
}
