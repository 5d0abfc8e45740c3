package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
)

// OP-110: changes of commands to all of the data of a running yaya are in its audit: a
// backup, the repair of a session, sessions and archives that are pruned or deleted.
func TestCommandsAreAuditedByTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	for _, id := range []string{"s1", "s2", "s3", "s4"} {
		b.must("run", "--session", id, "--approve", "never", "hello")
	}
	b.must("session", "archive", "s3")
	b.must("session", "delete", "s4")
	backups := t.TempDir()
	b.must("backup", backups)
	made, err := os.ReadDir(backups)
	if err != nil || len(made) != 1 {
		t.Fatalf("the folder of backups has %v, %v; want one backup", made, err)
	}
	if got := b.must("session", "prune", "--older", "1ns", "--dry-run"); !strings.Contains(got, "would be deleted: 2") {
		t.Errorf("prune --dry-run says %q", got)
	}
	if got := b.must("session", "prune", "--older", "1ns", "--archived"); !strings.Contains(got, "deleted: 1") {
		t.Errorf("prune --archived says %q", got)
	}
	if got := b.must("session", "prune", "--older", "1ns"); !strings.Contains(got, "deleted: 2") {
		t.Errorf("prune says %q", got)
	}
	for event, want := range map[string]string{
		"session_deleted": "s4 {}", "backup_made": made[0].Name() + ` {"bytes":`, "archives_pruned": `archives {"before":`, "sessions_pruned": `sessions {"before":`,
	} {
		var said []string
		for _, e := range b.audited(event) {
			var payload bytes.Buffer
			if err := json.Compact(&payload, e.Payload); err != nil {
				t.Fatal(err)
			}
			said = append(said, e.Actor+" "+e.Target+" "+payload.String())
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], "owner "+want) {
			t.Errorf("the audit has %q, want one %s of the owner with %s", said, event, want)
		}
	}
	_, err = daemon.WithDaemon(t.Context(), daemon.Paths{Data: filepath.Join(b.dir, "d")}, func(d *daemon.Backend) error {
		return d.API(t.Context(), "POST", "/cli/audit", daemon.Note{Event: "token_revoked", Target: "x"}, nil)
	})
	if !daemon.AnsweredWith(err, 400) {
		t.Errorf("a note of another event is answered with %v", err)
	}
}
