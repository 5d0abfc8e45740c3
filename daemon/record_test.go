package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/kernel/session"
)

// audited are the events of the audit that commands of this test are about, with their
// targets and payloads.
func audited(t *testing.T, g *Flags) (out []string) {
	t.Helper()
	about := []string{backupMade, dataRepaired, sessionRepaired, "session_deleted", "sessions_pruned", "archives_pruned", "restored", "control_restarted"}
	err := WithControl(t.Context(), g, func(b *Backend) error {
		var got []control.Audit
		if err := b.GetJSON(t.Context(), "/api/audit?limit=1000", &got); err != nil {
			return err
		}
		slices.SortFunc(got, func(a, b control.Audit) int { return cmp.Compare(a.Index, b.Index) })
		for _, e := range got {
			if slices.Contains(about, e.Event) {
				out = append(out, strings.Join([]string{e.Event, e.Actor, e.Target, string(e.Payload)}, " "))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pruned prunes as yaya session prune does.
func pruned(ctx context.Context, g *Flags, req PruneRequest) (done PruneAnswer, err error) {
	err = g.ChangeSessions(ctx, func(b *Backend) error {
		return b.API(ctx, http.MethodPost, "/cli/prune", req, &done)
	}, func(m *session.Manager, r Record) (err error) {
		done, err = Prune(ctx, m, req, r)
		return err
	})
	return done, err
}

// damageTape flips a bit of a session's tape.
func damageTape(t *testing.T, g *Flags, id string) {
	t.Helper()
	file := filepath.Join(g.DataDir, "tapes", session.TapeName("/ws", id)+".jsonl")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-20] ^= 1
	write(t, file, string(raw))
}

// OP-110: changes of commands to all of the data are in the audit, with the actor and how
// much: backup, prune and repair; here without a daemon.
func TestCommandsAreAudited(t *testing.T) {
	g := newFlags(t)
	if err := starts(t, g); err != nil {
		t.Fatal(err)
	}
	say, stop := talk(t, dataOf(t, g))
	for _, id := range []string{"s1", "s2", "s3"} {
		if err := errors.Join(say(id, "hello"), say(id, "again")); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := WithSessions(g, func(m *session.Manager) error { _, err := m.Archive("s3", "/ws"); return err }); err != nil {
		t.Fatal(err)
	}
	damageTape(t, g, "s2")
	b := backedUp(t, g)
	r, err := g.RepairSession(t.Context(), "s2", "/ws")
	if err != nil || len(r.Mended) != 1 || r.Unaudited != "" {
		t.Errorf("RepairSession = %+v, %v", r, err)
	}
	before := time.Now().Add(time.Hour)
	if done, err := pruned(t.Context(), g, PruneRequest{Before: before, DryRun: true}); err != nil || len(done.Names) != 2 {
		t.Errorf("a dry run = %v, %v, want two", done, err)
	}
	for _, archived := range []bool{false, true} {
		if _, err := pruned(t.Context(), g, PruneRequest{Before: before, Archived: archived}); err != nil {
			t.Errorf("pruned with archived %v: %v, want no error", archived, err)
		}
	}
	stamp := control.Stamp(before)
	want := []string{
		fmt.Sprintf(`backup_made owner %s {"bytes":%d,"encrypted":false,"file":%q,"files":%d}`, filepath.Base(b.File), b.Bytes, b.File, b.Files),
		fmt.Sprintf(`session_repaired owner s2 {"count":1,"files":["tapes/%s.jsonl"],"folder":%q,"left":0}`, session.TapeName("/ws", "s2"), r.Folder),
		fmt.Sprintf(`sessions_pruned owner sessions {"before":%q,"count":2}`, stamp),
		fmt.Sprintf(`archives_pruned owner archives {"before":%q,"count":1}`, stamp),
	}
	if got := audited(t, g); !slices.Equal(got, want) {
		t.Errorf("the audit has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// OP-110: a repair of the data and a restore are in the audit; a restore that is followed by no
// start yet is told to the first.
func TestRepairAndRestoreAreAudited(t *testing.T) {
	g := newYaya(t)
	b := backedUp(t, g)
	write(t, filepath.Join(g.DataDir, "permits.json"), "x")
	if r, err := g.RepairData(t.Context()); err != nil || len(r.Mended) != 1 || r.Unaudited != "" {
		t.Fatalf("RepairData = %+v, %v", r, err)
	}
	if got := audited(t, g); len(got) != 2 || !strings.HasPrefix(got[1], `data_repaired owner data {"count":1,"files":["permits.json"]`) {
		t.Errorf("the audit has %q, want the repair", got)
	}
	to := elsewhere(t)
	if _, err := to.Restore(t.Context(), RestoreOptions{File: b.File}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`restored owner data {"backup":%q,"bytes":%d,"created":`, filepath.Base(b.File), b.Bytes)
	if got := audited(t, to); len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.Contains(got[0], fmt.Sprintf(`"files":%d`, b.Files)) {
		t.Errorf("the audit has %q, want %q and %d files", got, want, b.Files)
	}
	if got := audited(t, to); len(got) != 1 {
		t.Errorf("it is reported again: %q", got)
	}
}

// OP-110: without an audit that can be written, a backup and a repair are made all the same,
// and say so; nothing is deleted.
func TestWithoutAudit(t *testing.T) {
	g := newYaya(t)
	write(t, filepath.Join(g.DataDir, "control", "log.jsonl"), "x\n")
	write(t, filepath.Join(g.DataDir, "permits.json"), "x")
	said := func(notes ...string) bool {
		return slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "the audit has no entry about this: ") })
	}
	if b := backedUp(t, g); !said(b.Notes...) {
		t.Errorf("the notes are %q, want that the audit has no entry", b.Notes)
	}
	if r, err := g.RepairData(t.Context()); err != nil || len(r.Mended) != 1 || !said(r.Unaudited) {
		t.Errorf("RepairData = %+v, %v, want it done, and that the audit has no entry", r, err)
	}
	if done, err := pruned(t.Context(), g, PruneRequest{Before: time.Now().Add(time.Hour)}); err == nil || len(done.Names) > 0 {
		t.Errorf("pruning = %v, %v, want it refused", done, err)
	}
	old := newYaya(t)
	if err := os.Remove(filepath.Join(old.DataDir, formatFile)); err != nil {
		t.Fatal(err)
	}
	if b := backedUp(t, old); !said(b.Notes...) {
		t.Errorf("the notes are %q, want that the audit has no entry", b.Notes)
	}
	if format, _, err := formatOf(dataOf(t, old)); err != nil || format != 1 {
		t.Errorf("a backup took the directory to format %d, %v", format, err)
	}
}
