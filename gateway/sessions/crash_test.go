package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/kernel/session"
)

// REL-1: a process that dies right after the end of a turn, or of several, has told its clients more
// than session.json has: the next one counts it, whether it is asked for the session or gets a message.
func TestCountedAfterACrash(t *testing.T) {
	for _, turns := range []int{1, 3} {
		for _, first := range []string{"asked", "told"} {
			t.Run(fmt.Sprint(turns, " turns, ", first), func(t *testing.T) {
				w := newWorld(t, oneWrite)
				id := w.create()
				f := w.follow(id, "")
				for range turns {
					w.say(id, "fail")
					f.until("session_failed")
				}
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(w.dir)); err != nil {
					t.Fatal(err)
				}
				next := &world{t: t, dir: dir, ws: w.ws, who: w.who}
				next.start(`{"scenarios":[]}`)
				defer next.stop()
				want, status := float64(turns), "failed"
				if first == "told" {
					next.say(id, "hello")
					want, status = want+1, "active"
				}
				st := next.idle(id)
				if usage := st["usage"].(map[string]any); usage["turns"] != want || st["status"] != status {
					t.Errorf("after the crash: %v turns, %v; want %v, %s", usage["turns"], st["status"], want, status)
				}
			})
		}
	}
}

// movable is an owner of sessions that another node takes.
type movable struct {
	uncopied
	by string
}

func (o *movable) Elsewhere(context.Context, string) string { return o.by }

func (*movable) Copied(context.Context, string, []session.File) (bool, error) { return true, nil }

func (*movable) Gone(context.Context, string) error { return nil }

func (*movable) Describe(string, json.RawMessage) {}

// Nothing of a session is left on a node that has given it up, although its feed still had to write.
func TestNothingOfAMovedSession(t *testing.T) {
	for _, say := range []string{"fail", "wait"} {
		t.Run(say, func(t *testing.T) {
			w := newWorld(t, oneWrite)
			w.stop()
			o := &movable{}
			w.owner = o
			w.start(oneWrite)
			id := w.create()
			f := w.follow(id, "")
			w.say(id, say)
			f.until(map[string]string{"fail": "session_failed", "wait": "tool_call_started"}[say])
			o.by = "another"
			w.k.Loop.Cancel(id)
			if err := w.k.Sessions.GiveUp(id); err != nil {
				t.Fatal(err)
			}
			w.stop()
			if _, err := os.Stat(filepath.Join(w.dir, "sessions", id)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder of the session: %v, want that it is gone", err)
			}
		})
	}
}
