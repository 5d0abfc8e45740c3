package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/backup"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// OP-43: sessions that begin and go on while a backup is made, and whose records count their
// entries, fit together in it, at whatever step of the backup they begin; so does one that is
// deleted meanwhile.
func TestBackupOfNewSessions(t *testing.T) {
	g := newYaya(t)
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	data := dataOf(t, g)
	say, stop := talk(t, data)
	defer stop()
	epoch := regexp.MustCompile(`"epoch":"([^"]+)"`)
	goOn := func(id string) {
		t.Helper()
		for i := range 3 {
			if err := say(id, fmt.Sprint("message ", i)); err != nil {
				t.Fatal(err)
			}
		}
		tape, err := os.ReadFile(filepath.Join(g.DataDir, "tapes", session.TapeName("/ws", id)+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		counted := session.Cursor{Epoch: string(epoch.FindSubmatch(tape)[1]), Seq: int64(bytes.Count(tape, []byte("\n")))}
		raw, err := json.Marshal(map[string]any{"id": id, "workspace_path": "/ws", "counted": counted})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(g.DataDir, sessionsFolder, event.Folder(id), sessionRecord), string(raw))
	}
	goOn("before")
	goOn("deleted")
	var out bytes.Buffer
	head, err := backupHead(data, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := &capture{p: p, data: data, damaged: map[string]bool{}}
	if c.to, err = backup.NewWriter(&out, head); err != nil {
		t.Fatal(err)
	}
	begun := []string{"before"}
	for i, step := range c.steps(t.Context(), g) {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		begun = append(begun, fmt.Sprint("during-", i))
		for _, id := range begun {
			goOn(id)
		}
		if i == 3 { // its record is in the backup
			err := errors.Join(os.Remove(filepath.Join(g.DataDir, "tapes", session.TapeName("/ws", "deleted")+".jsonl")), os.RemoveAll(filepath.Join(g.DataDir, sessionsFolder, event.Folder("deleted"))))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.to.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	write(t, file, out.String())
	to := elsewhere(t)
	if r, err := to.Restore(t.Context(), RestoreOptions{File: file}); err != nil || len(r.Damaged) > 0 {
		t.Fatalf("Restore = %+v, %v, want a whole backup", r, err)
	}
	if got := slices.DeleteFunc(damagedNow(t, to), func(name string) bool { return !strings.HasPrefix(name, "tapes/") }); len(got) > 0 {
		t.Errorf("verify calls %q damaged after the restore", got)
	}
	if _, err := os.Stat(filepath.Join(to.DataDir, sessionsFolder, event.Folder("before"), sessionRecord)); err != nil {
		t.Errorf("the record of an earlier session: %v, want it restored", err)
	}
}
