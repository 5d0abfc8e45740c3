package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control/local"
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

// OP-43: the file that names the newest entries of the audit is emptied by each seal. A
// backup that has opened it has what it named then, which the log that is opened later has, too.
func TestBackupOfAnEmptiedFile(t *testing.T) {
	const name = keysFolder + "/" + local.LastFile
	for what, change := range map[string]func(at string) error{
		"emptied":          func(at string) error { return os.Truncate(at, 0) },
		"emptied and used": func(at string) error { return os.WriteFile(at, []byte("later, and longer\n"), 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			g := newYaya(t)
			p, err := g.Paths()
			if err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(g.DataDir, filepath.FromSlash(name))
			write(t, at, "\nbefore\n")
			var out bytes.Buffer
			c := &capture{p: p, data: dataOf(t, g), damaged: map[string]bool{}}
			if c.to, err = backup.NewWriter(&out, backup.Head{}); err != nil {
				t.Fatal(err)
			}
			k, err := c.open(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(change(at), c.add(k), k.f.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.to.Close(); err != nil {
				t.Fatal(err)
			}
			if got := member(t, &out, "data/"+name); got != "\nbefore\n" {
				t.Errorf("the backup has %q, want what the file had when it was opened", got)
			}
		})
	}
}

// emptying is a file that others empty, or use, after each of its first readings.
type emptying struct {
	contents []string
	reads    int
}

func (e *emptying) ReadAt(p []byte, _ int64) (int, error) {
	content := e.contents[min(e.reads, len(e.contents)-1)]
	e.reads++
	if n := copy(p, content); n < len(p) {
		return n, io.EOF
	}
	return len(p), nil
}

// OP-43: a file that is emptied while it is read is read again.
func TestAtOneMoment(t *testing.T) {
	f := &emptying{contents: []string{"old, new", "new", "new", "newer"}}
	if got, err := atOneMoment(f, 8); string(got) != "new" || err != nil {
		t.Errorf("atOneMoment() = %q, %v, want what it has twice", got, err)
	}
	for range 2 * tries {
		f.contents = append(f.contents, fmt.Sprint(len(f.contents)))
	}
	f.reads = 3
	if _, err := atOneMoment(f, 8); err == nil || !strings.Contains(err.Error(), "keeps changing") {
		t.Errorf("a file that changes all the time: %v, want an error that says so", err)
	}
}

// member is the content of a file in a backup that is not encrypted.
func member(t *testing.T, r io.Reader, name string) string {
	t.Helper()
	in, err := backup.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := in.Next()
		if err != nil {
			t.Fatalf("%s: %v, want it in the backup", name, err)
		}
		if m.Name != name {
			continue
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
}
