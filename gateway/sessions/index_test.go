package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/session"
)

// listed returns the ids of a list, page by page.
func (w *world) listed(query string) (out []string) {
	w.t.Helper()
	cursor := ""
	for {
		page := w.must("GET", "/v1/sessions?limit=3"+query+cursor, "", 200)
		for _, s := range page["sessions"].([]any) {
			out = append(out, s.(map[string]any)["id"].(string))
		}
		next, more := page["next"].(string)
		if !more {
			return out
		}
		cursor = "&cursor=" + next
	}
}

// OP-12, REL-8: status and Idempotency-Key are known after a restart, and after the index
// was lost.
func TestListsAfterARestart(t *testing.T) {
	w := newWorld(t, "")
	body := fmt.Sprintf(`{"workspace_path":%q}`, w.ws)
	_, out := w.do("POST", "/v1/sessions", body, "Idempotency-Key", "one")
	keyed := out["session_id"].(string)
	closed := w.create()
	w.must("POST", "/v1/sessions/"+closed+"/close", "", 200)
	for range 6 {
		w.create()
	}
	if _, err := w.k.Sessions.Open("elsewhere", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		w.stop()
		if lost {
			if err := os.RemoveAll(filepath.Join(w.dir, "tapes/.index")); err != nil { //nolint:forbidigo // a test's own folder
				t.Fatal(err)
			}
		}
		w.start("")
		if got := w.listed(""); len(got) != 9 {
			t.Errorf("lost %v: got %v, want 9 sessions", lost, got)
		}
		if got := w.listed("&status=completed"); len(got) != 1 || got[0] != closed {
			t.Errorf("lost %v: got %v, want %s", lost, got, closed)
		}
		if got := w.listed("&status=active"); len(got) != 8 {
			t.Errorf("lost %v: got %v, want 8 sessions", lost, got)
		}
		if _, out := w.do("POST", "/v1/sessions", body, "Idempotency-Key", "one"); out["session_id"] != keyed {
			t.Errorf("lost %v: got %v, want %s", lost, out, keyed)
		}
		if status, out := w.do("POST", "/v1/sessions", fmt.Sprintf(`{"workspace_path":%q,"title":"x"}`, w.ws), "Idempotency-Key", "one"); status != 409 {
			t.Errorf("lost %v: got %d %v, want 409", lost, status, out)
		}
	}
	w.must("PATCH", "/v1/sessions/"+closed, `{"title":"renamed"}`, 200)
	if got := w.listed(""); got[0] != closed {
		t.Errorf("got %v first, want the session that was renamed", got[0])
	}
}

// narrowFS says how much space there is.
type narrowFS struct {
	journal.FS
	free int64
}

func (n *narrowFS) Free() (journal.Space, error) { return journal.Space{Bytes: n.free, Files: -1}, nil }

// OP-13, REL-11: on a disk with too little space, creating and forking a session and
// uploading say so with 507.
func TestNoSpace(t *testing.T) {
	disk := &narrowFS{free: session.MinFree}
	w := newWorld(t, "", func(c *sessions.Config) {
		root, err := c.Root.OpenRoot(".")
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.OpenRoot(filepath.Dir(root.Name()))
		if err != nil {
			t.Fatal(err)
		}
		disk.FS = journal.Root(data)
		m, err := session.OpenManager(session.Config{FS: disk, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		m.Bind(c.Bus)
		c.Sessions = m
		t.Cleanup(func() {
			if err := m.Close(context.Background()); err != nil {
				t.Errorf("Close of the sessions = %v, want no error", err)
			}
			_, _ = root.Close(), data.Close()
		})
	})
	id := w.create()
	disk.free = 30 << 20
	for _, r := range [][2]string{
		{"/v1/sessions", fmt.Sprintf(`{"workspace_path":%q}`, w.ws)},
		{"/v1/sessions/" + id + "/fork", ""},
		{"/v1/sessions/" + id + "/attachments", `{"data":"eA=="}`},
	} {
		status, out := w.do("POST", r[0], r[1])
		e, _ := out["error"].(map[string]any)
		if status != 507 || e["code"] != "disk_full" || !strings.Contains(fmt.Sprint(e["message"]), "30 MiB are free, and 64 MiB are kept") {
			t.Errorf("%s: got %d %v, want 507 with what is free", r[0], status, out)
		}
	}
	disk.free = session.MinFree
	w.must("POST", "/v1/sessions/"+id+"/attachments", `{"data":"eA=="}`, 201)
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		err = fmt.Errorf("write session.json: %w", err)
		if f := api.Explain(zerolog.Nop(), "req_1", err); f.Status != 507 || f.Code != "disk_full" || strings.Contains(f.Message, "session.json") {
			t.Errorf("%v: got %+v, want 507 without the file's name", err, f)
		}
	}
}

// OP-14, REL-7: DELETE deletes a session for good, once the audit has taken it down; its
// readers are told nothing more, and it is not found again.
func TestDeleteSession(t *testing.T) {
	var audited []string
	var refuse error
	w := newWorld(t, oneWrite, func(c *sessions.Config) {
		c.Audit = func(_ context.Context, event, target string, _ map[string]any) error {
			audited = append(audited, event+" "+target)
			return refuse
		}
	})
	id, other := w.create(), w.create()
	w.must("POST", "/v1/sessions/"+id+"/attachments", `{"data":"eA=="}`, 201)
	w.say(id, "wait")
	w.refused("DELETE", "/v1/sessions/"+id, "", 409, "busy")
	w.must("POST", "/v1/sessions/"+id+"/cancel", "", 202)
	w.idle(id)
	refuse = errors.New("the audit is full")
	w.refused("DELETE", "/v1/sessions/"+id, "", 500, "internal")
	w.must("GET", "/v1/sessions/"+id, "", 200)
	refuse = nil
	away := w.create()
	for _, id := range []string{id, id + "::agent::a", away} {
		w.k.Loop.SetStrategy(id, "own")
	}
	w.must("DELETE", "/v1/sessions/"+id, "", 204)
	w.must("POST", "/v1/sessions/"+away+"/archive", "", 204)
	for _, id := range []string{id, id + "::agent::a", away} { // REL-8: nothing of it stays in memory
		if got := w.k.Loop.StrategyOf(id); got == "own" {
			t.Errorf("strategy of %s = %q, want it forgotten", id, got)
		}
	}
	w.refused("DELETE", "/v1/sessions/"+id, "", 404, "not_found")
	w.refused("DELETE", "/v1/sessions/..%2fx", "", 404, "not_found")
	w.refused("GET", "/v1/sessions/"+id, "", 404, "not_found")
	if got := w.listed(""); len(got) != 1 || got[0] != other {
		t.Errorf("got %v, want %s", got, other)
	}
	if want := "session_deleted " + id; len(audited) != 2 || audited[1] != want {
		t.Errorf("got %v, want %q twice", audited, want)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "sessions", id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no folder", err)
	}
}

// OP-15, REL-10: a fork has its parent's attachments, even after the parent was deleted.
func TestForkHasAttachments(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	ref := w.must("POST", "/v1/sessions/"+id+"/attachments", `{"data":"eA=="}`, 201)["ref"].(string)
	child := w.must("POST", "/v1/sessions/"+id+"/fork", "", 201)["id"].(string)
	w.must("DELETE", "/v1/sessions/"+id, "", 204)
	if status, raw, _ := w.raw("GET", "/v1/sessions/"+child+"/"+ref, ""); status != 200 || string(raw) != "x" {
		t.Errorf("got %d %s, want the attachment", status, raw)
	}
	w.must("POST", "/v1/sessions/"+child+"/messages", fmt.Sprintf(`{"role":"user","auto_run":false,"parts":[{"type":"file","ref":%q}]}`, ref), 202)
}

// A session that yaya run has made has no record of its own here, and a title all the same.
func TestTitleOfATape(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	w.say(id, "hello")
	w.idle(id)
	w.stop()
	if err := os.Remove(filepath.Join(w.dir, "sessions", id, "session.json")); err != nil {
		t.Fatal(err)
	}
	w.start("")
	if got := w.s.Title(id); got != "hello" {
		t.Errorf("Title = %q, want %q", got, "hello")
	}
	if got := w.s.Title("unknown"); got != "" {
		t.Errorf("Title of an unknown session = %q, want none", got)
	}
}

// session.json is written soon after the end of a turn, and before yaya stops, however soon that is;
// lists have the end at once.
func TestTurnsAreKept(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	f := w.follow(id, "")
	w.say(id, "fail")
	f.until("session_failed")
	if all := w.must("GET", "/v1/sessions?status=failed", "", 200)["sessions"].([]any); len(all) != 1 {
		t.Errorf("after the end of a turn, %d failed sessions are listed, want 1", len(all))
	}
	w.stop()
	raw, err := os.ReadFile(filepath.Join(w.dir, "sessions", id, "session.json"))
	if err != nil || !strings.Contains(string(raw), `"status": "failed"`) || !strings.Contains(string(raw), `"turns": 1`) {
		t.Errorf("session.json is %s, %v; want one failed turn", raw, err)
	}
}
