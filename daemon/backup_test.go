package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

// talk is a manager of sessions beside whoever else works on a data directory.
func talk(t *testing.T, data *os.Root) (say func(id, text string) error, stop func()) {
	t.Helper()
	m, err := session.OpenManager(session.Config{FS: journal.Root(data), Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	say = func(id, text string) error {
		s, err := m.Open(id, "")
		if err != nil {
			return err
		}
		ev, err := bus.Publish(b.Kernel(), event.UserMessageReceived, id, event.UserMessage{Text: text})
		if err != nil {
			return err
		}
		return s.Sync(context.Background(), ev.Entry)
	}
	return say, func() {
		if err := errors.Join(m.Close(context.Background()), b.Close(context.Background())); err != nil {
			t.Errorf("Close of the sessions and the bus = %v, want no error", err)
		}
	}
}

// remember writes memories, with the plugin that yaya has for it.
func remember(t *testing.T, path string) (write func(text string) error, stop func()) {
	t.Helper()
	p := memory_sqlite.New(path)
	if err := p.OnLoad(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	write = func(text string) error {
		return p.OnEvent(context.Background(), event.Event{Payload: event.MemoryWrite{Entry: event.MemoryEntry{Text: text}}}, plugin.Context(nil))
	}
	return write, func() {
		if err := p.OnUnload(context.Background(), nil); err != nil {
			t.Errorf("OnUnload of the memory = %v, want no error", err)
		}
	}
}

// newYaya makes a data directory with something of everything.
func newYaya(t *testing.T) *Flags {
	t.Helper()
	g := newFlags(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(WithServers(ctx, g, func(b *Backend) error {
		return errors.Join(
			b.API(ctx, http.MethodPut, "/api/secrets/db", map[string]string{"value": "a value that is secret"}, nil),
			b.API(ctx, http.MethodPost, "/api/tokens", map[string]any{"name": "ci"}, nil))
	}))
	must(WithSettings(ctx, g, func(b *Backend) error {
		return b.API(ctx, http.MethodPatch, "/api/config/session.heartbeat_timeout", map[string]any{"value": "70s"}, nil)
	}))
	write(t, filepath.Join(g.ConfigDir, "mcp.json"), `{"mcpServers":{}}`)
	data := dataOf(t, g)
	say, stop := talk(t, data)
	for i := range 5 {
		for _, id := range []string{"s1", "s2", "s3"} {
			must(say(id, fmt.Sprintf("message %d of %s", i, id)))
		}
	}
	stop()
	remembers, stop := remember(t, filepath.Join(g.DataDir, memoryFile))
	must(remembers("the sky is blue"))
	stop()
	for file, content := range map[string]string{
		"sessions/sess_1/session.json": `{"id":"sess_1"}`, "sessions/sess_1/attachments/att_1.png": "an image", "sessions/sess_1/attachments/.att_2": "half of an im",
		"sessions/sess_1/events.ndjson": "{}\n{}\n{\"half", "traffic/0000000000000001.ndjson": "{\"id\":1}\n", "traffic/lock": "", "trust/x.json": `{"source":{"server":"one"},"first_seen":"2026-01-01T00:00:00Z","identity":"one","protocol_version":"2025-06-18","tools":{}}`,
		".config.json.999999.tmp": "leftover", "tapes/x.jsonl.new": "leftover", "tapes/.index/sessions": "x", "tapes/.queued/mark": "", "plugins/x/run": "#!/bin/sh\n",
	} {
		write(t, filepath.Join(g.DataDir, filepath.FromSlash(file)), content)
	}
	must(os.Chmod(filepath.Join(g.DataDir, "plugins", "x", "run"), 0o700))
	must(os.Chtimes(filepath.Join(g.DataDir, "trust", "x.json"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
	return g
}

// contents are the files below a folder that a backup is to have.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.Name() == ".index" {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		base := filepath.Base(name)
		if base == restoredFile || strings.HasSuffix(base, "lock") || strings.HasPrefix(name, memoryFile) || strings.HasSuffix(base, ".new") || strings.HasPrefix(base, ".") {
			return nil
		}
		raw, err := os.ReadFile(path)
		if strings.HasSuffix(name, ".ndjson") {
			raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
		}
		out[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// elsewhere is a place to restore to.
func elsewhere(t *testing.T) *Flags {
	t.Helper()
	dir := t.TempDir()
	return &Flags{DataDir: filepath.Join(dir, "data"), ConfigDir: filepath.Join(dir, "config")}
}

func backedUp(t *testing.T, g *Flags, to ...age.Recipient) Backup {
	t.Helper()
	b, err := g.Backup(t.Context(), BackupOptions{To: t.TempDir(), Recipients: to})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// OP-43, OP-44: a backup holds everything that lasts, with times and modes, and no temporary
// file; restored, it is the same yaya. Only an encrypted one has the key of the secrets.
func TestBackup(t *testing.T) {
	g := newYaya(t)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		to  []age.Recipient
		ids []age.Identity
	}{"in the clear": {}, "encrypted": {[]age.Recipient{id.Recipient()}, []age.Identity{id}}} {
		t.Run(name, func(t *testing.T) {
			want := contents(t, g.DataDir)
			b := backedUp(t, g, c.to...)
			if b.Encrypted != (c.to != nil) || b.Files == 0 || damagedIn(b.Findings) > 0 {
				t.Errorf("Backup = %+v", b)
			}
			if st, err := os.Stat(b.File); err != nil || st.Mode().Perm() != 0o600 || strings.HasSuffix(b.File, ".age") != b.Encrypted {
				t.Errorf("Stat(%s) = %v, %v; want mode 0600 and the ending .age: %v", b.File, st, err, b.Encrypted)
			}
			to := elsewhere(t)
			r, err := to.Restore(t.Context(), RestoreOptions{File: b.File, Identities: c.ids})
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(t, to.DataDir); !maps.Equal(got, want) {
				t.Errorf("restored files: got %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			if r.Files != b.Files || len(r.Damaged) > 0 {
				t.Errorf("Restore = %+v, want the %d files of the backup", r, b.Files)
			}
			keyed := map[bool][]string{false: {"mcp.json"}, true: {"mcp.json", "secrets.key"}}[b.Encrypted]
			if got := slices.Sorted(maps.Keys(contents(t, to.ConfigDir))); !slices.Equal(got, keyed) {
				t.Errorf("the configuration has %q, want %q", got, keyed)
			}
			if told := strings.Contains(fmt.Sprint(b.Notes), "is not in the backup"); told == b.Encrypted {
				t.Errorf("notes: %q", b.Notes)
			}
			if st, err := os.Stat(filepath.Join(to.DataDir, "plugins", "x", "run")); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("the program: %v, %v, want it to be one", st, err)
			}
			if st, err := os.Stat(filepath.Join(to.DataDir, "trust", "x.json")); err != nil || st.ModTime().Unix() != 1e9 {
				t.Errorf("the file is of %v, %v", st.ModTime(), err)
			}
			if problem, err := memory_sqlite.Verify(t.Context(), filepath.Join(to.DataDir, memoryFile)); problem != "" || err != nil {
				t.Errorf("the memory: %s, %v", problem, err)
			}
			if got := tokensOf(t, to); got != "ci" {
				t.Errorf("the tokens are %q, want ci", got)
			}
		})
	}
}

// tokensOf opens a yaya and names its tokens.
func tokensOf(t *testing.T, g *Flags) (out string) {
	t.Helper()
	err := WithControl(t.Context(), g, func(b *Backend) error {
		var all []struct{ Name string }
		err := b.API(t.Context(), http.MethodGet, "/api/tokens", nil, &all)
		for _, x := range all {
			out += x.Name
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// OP-43: backups that are made while messages, memories and changes come are whole, and
// have everything that was acknowledged before.
func TestBackupUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	g := newYaya(t)
	data := dataOf(t, g)
	say, stop := talk(t, data)
	defer stop()
	remembers, stopMemory := remember(t, filepath.Join(g.DataDir, memoryFile))
	defer stopMemory()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	var mu sync.Mutex
	said := map[string]int{}
	for i := range 4 {
		id := fmt.Sprintf("load-%d", i)
		work.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				if err := errors.Join(say(id, fmt.Sprint("message ", n)), remembers(fmt.Sprint("memory ", n, " of ", id))); err != nil {
					t.Errorf("message and memory %d of %s: %v, want them written", n, id, err)
					return
				}
				mu.Lock()
				said[id] = n
				mu.Unlock()
			}
		})
	}
	work.Go(func() {
		for n := 0; ctx.Err() == nil && n < 200; n++ { // yaya has at most 256
			err := WithControl(ctx, g, func(b *Backend) error {
				return b.API(ctx, http.MethodPost, "/api/tokens", map[string]any{"name": fmt.Sprint("t", n)}, nil)
			})
			if err != nil && ctx.Err() == nil {
				t.Errorf("POST /api/tokens = %v, want no error", err)
			}
		}
	})
	for range 5 {
		mu.Lock()
		before := maps.Clone(said)
		mu.Unlock()
		b := backedUp(t, g)
		to := elsewhere(t)
		if _, err := to.Restore(t.Context(), RestoreOptions{File: b.File}); err != nil {
			t.Fatal(err)
		}
		err := WithSessions(to, func(m *session.Manager) error {
			for id, want := range before {
				got := 0
				err := m.View(id, "/ws", 0, func(e session.Entry) error {
					if e.Kind == session.KindMessage {
						got++
					}
					return nil
				})
				if err != nil || got < want {
					t.Errorf("%s has %d messages, %v; %d were acknowledged before the backup", id, got, err, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("WithSessions = %v, want no error", err)
		}
	}
}

// OP-43: a backup is not made where it would become part of the next, overwrites nothing, and
// there has to be something to back up.
func TestBackupRefuses(t *testing.T) {
	g := newYaya(t)
	taken := filepath.Join(t.TempDir(), "taken")
	write(t, taken, "something else")
	for name, c := range map[string]struct {
		g        *Flags
		to, want string
	}{
		"a file that is there":       {g, taken, "overwrites nothing"},
		"the data directory":         {g, g.DataDir, "lies in the data directory"},
		"a folder in it":             {g, filepath.Join(g.DataDir, "keys", "x"), "lies in the data directory"},
		"a folder that is missing":   {g, filepath.Join(t.TempDir(), "missing") + "/", "there is no folder"},
		"no data":                    {elsewhere(t), t.TempDir(), "no such file"},
		"a directory without yaya's": {&Flags{DataDir: t.TempDir(), ConfigDir: t.TempDir()}, t.TempDir(), "there is no yaya data"},
	} {
		if b, err := c.g.Backup(t.Context(), BackupOptions{To: c.to}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", name, b, err, c.want)
		}
	}
	if raw, err := os.ReadFile(taken); err != nil || string(raw) != "something else" {
		t.Errorf("the file has become %q, %v", raw, err)
	}
}

// dies is a file system of a process that is killed before its n-th step: no later step
// happens. ended reports that all were made.
func dies(fsys journal.FS, n int) (f *journaltest.Faults, ended func() bool) {
	killed := false
	f = &journaltest.Faults{FS: fsys, Partial: func(s journaltest.Step) int { return s.Len / 2 }}
	f.Before = func(s journaltest.Step) error {
		if s.N >= n {
			killed = true
			return fs.ErrClosed
		}
		return nil
	}
	return f, func() bool { return !killed }
}

// OP-46: a backup that is killed at any step leaves nothing under its name, and the next one
// removes what it left.
func TestKilledBackup(t *testing.T) {
	dir := t.TempDir()
	target, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for n := 1; ; n++ {
		fsys, ended := dies(journal.Root(target), n)
		err := putBackup(fsys, "backup", func(f journal.File) error {
			_, err := f.Write([]byte("a whole backup"))
			return err
		})
		raw, rerr := os.ReadFile(filepath.Join(dir, "backup"))
		if rerr == nil && string(raw) != "a whole backup" || err == nil && rerr != nil {
			t.Fatalf("step %d: %v, and the file has %q, %v", n, err, raw, rerr)
		}
		if ended() {
			break
		}
		if rerr == nil {
			if err := target.Remove("backup"); err != nil {
				t.Fatal(err)
			}
		}
		if err := putBackup(journal.Root(target), "another", func(journal.File) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Fatalf("step %d: the next backup leaves %v, want itself alone", n, entries)
		}
		if err := target.Remove("another"); err != nil {
			t.Fatal(err)
		}
	}
}

// A backup that another process is writing stays.
func TestUnfinishedBackupOfAnother(t *testing.T) {
	dir := t.TempDir()
	target, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	fsys := journal.Root(target)
	err = putBackup(fsys, "one", func(f journal.File) error {
		if err := putBackup(fsys, "two", func(journal.File) error { return nil }); err != nil {
			return err
		}
		if err := putBackup(fsys, "one", func(journal.File) error { return nil }); err == nil || !strings.Contains(err.Error(), "another yaya backup") {
			t.Errorf("the same name: %v, want that another is writing it", err)
		}
		return nil
	})
	if entries, rerr := os.ReadDir(dir); err != nil || rerr != nil || len(entries) != 2 {
		t.Errorf("%v, and the folder has %v, want both", err, entries)
	}
}

func damagedIn(findings []session.Finding) (n int) {
	for _, f := range findings {
		if f.Damaged {
			n++
		}
	}
	return n
}

// OP-43: a memory that is a link to another disk is in the backup, and a note says that it was
// one; a link that leads to nothing is noted, too.
func TestBackupOfALinkedMemory(t *testing.T) {
	for name, gone := range map[string]bool{"a link": false, "a link to nothing": true} {
		t.Run(name, func(t *testing.T) {
			g := newYaya(t)
			at, disk := filepath.Join(g.DataDir, memoryFile), filepath.Join(t.TempDir(), "elsewhere.db")
			if err := errors.Join(os.Rename(at, disk), os.Symlink(disk, at)); err != nil {
				t.Fatal(err)
			}
			if gone {
				if err := os.Remove(disk); err != nil {
					t.Fatal(err)
				}
			}
			b, err := g.Backup(t.Context(), BackupOptions{To: t.TempDir()})
			want := map[bool]string{false: "memory.db is a link", true: "memory.db is not in the backup"}[gone]
			if err != nil || !strings.Contains(strings.Join(b.Notes, "\n"), want) {
				t.Fatalf("Backup = %q, %v, want the note %q", b.Notes, err, want)
			}
			to := newFlags(t)
			if _, err := to.Restore(t.Context(), RestoreOptions{File: b.File}); err != nil {
				t.Fatal(err)
			}
			st, err := os.Lstat(filepath.Join(to.DataDir, memoryFile))
			if gone != errors.Is(err, os.ErrNotExist) || !gone && (err != nil || !st.Mode().IsRegular() || st.Size() == 0) {
				t.Errorf("the restored memory is %v, %v, want a file unless the link led to nothing", st, err)
			}
		})
	}
}

// OP-43: several backups into a folder within a second have names of their own.
func TestBackupsOfASecond(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 26, 15, 4, 5, 0, time.UTC)
	for _, want := range []string{"yaya-20261126T150405Z.tar.gz", "yaya-20261126T150405Z-2.tar.gz", "yaya-20261126T150405Z-3.tar.gz"} {
		got, err := backupName(dir, now, false)
		if err != nil || filepath.Base(got) != want {
			t.Fatalf("backupName = %s, %v, want %s", got, err, want)
		}
		write(t, got, "")
	}
}
