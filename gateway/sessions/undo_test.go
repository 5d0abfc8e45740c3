package sessions_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/kernel/session"
)

// AGT-4: a session on which another process works is busy.
func TestUndoInAnotherProcess(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	next := &world{t: t, dir: w.dir, ws: w.ws, who: w.who}
	next.start(`{"scenarios":[]}`)
	defer next.stop()
	next.refused("POST", "/v1/sessions/"+id+"/undo", "", http.StatusConflict, "busy")
}

// AGT-4: each reason why nothing is undone has its code, and the model gets a note whenever something is.
func TestUndoAnswers(t *testing.T) {
	done := undo.Undone{Folder: "/ws", Files: []string{"a"}, Without: []string{"large"}, Remaining: []undo.Remaining{{Path: "d/", Why: "it has x"}}}
	for name, tc := range map[string]struct {
		done   undo.Undone
		err    error
		status int
		code   string
	}{
		"undone":                 {done: done, status: http.StatusOK},
		"undone, with an error":  {done: done, err: errors.New("disk"), status: http.StatusInternalServerError, code: "internal"},
		"lost content":           {err: undo.ErrContent, status: http.StatusConflict, code: "nothing_to_undo"},
		"nothing":                {err: undo.ErrNothing, status: http.StatusConflict, code: "nothing_to_undo"},
		"changed":                {err: undo.ErrChanged, status: http.StatusConflict, code: "changed_since"},
		"in the way":             {err: undo.ErrInTheWay, status: http.StatusConflict, code: "changed_since"},
		"another folder":         {err: undo.ErrOtherFolder, status: http.StatusConflict, code: "other_folder"},
		"no folder":              {err: undo.ErrGone, status: http.StatusConflict, code: "other_folder"},
		"a folder without trust": {err: undo.ErrUntrusted, status: http.StatusForbidden, code: "workspace_not_allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, oneWrite, func(c *sessions.Config) {
				c.Undo = func(context.Context, string) (undo.Undone, error) { return tc.done, tc.err }
			})
			id := w.create()
			if tc.code == "" {
				w.must("POST", "/v1/sessions/"+id+"/undo", "", tc.status)
			} else {
				w.refused("POST", "/v1/sessions/"+id+"/undo", "", tc.status, tc.code)
			}
			k, err := w.k.Sessions.Find(id, "")
			if err != nil {
				t.Fatal(err)
			}
			noted := false
			if err := k.Entries(0, func(e session.Entry) error {
				noted = noted || strings.Contains(string(e.Payload), `as they were before:\na\nThese are not:\nlarge\nd/: it has x`)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if noted != (tc.done.Folder != "") {
				t.Errorf("the model gets a note: %v, want %v", noted, !noted)
			}
		})
	}
}

// AGT-4: a turn begins before an undo, which is refused then, or after it, with the note.
func TestUndoBeforeATurn(t *testing.T) {
	var w *world
	var id string
	said, undone := make(chan struct{}), false
	w = newWorld(t, oneWrite, func(c *sessions.Config) {
		c.Undo = func(context.Context, string) (undo.Undone, error) {
			go func() {
				defer close(said)
				w.say(id, "hello")
			}()
			select {
			case <-said:
			case <-time.After(300 * time.Millisecond): // it waits for the undo
			}
			undone = true
			return undo.Undone{Folder: "/ws", Files: []string{"a"}}, nil
		}
	})
	id = w.create()
	w.must("POST", "/v1/sessions/"+id+"/undo", "", http.StatusOK)
	<-said
	k, err := w.k.Sessions.Find(id, "")
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	if err := k.Entries(0, func(e session.Entry) error {
		for _, text := range []string{"The user has undone", "hello"} {
			if strings.Contains(string(e.Payload), text) {
				order += text + ", "
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !undone || !strings.HasPrefix(order, "The user has undone, hello") {
		t.Errorf("the tape has %q, want the note first", order)
	}
}
