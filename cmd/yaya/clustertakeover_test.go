package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

// says returns what is said in a session, by whoever is asked.
func (b *box) says(session string) []string {
	b.t.Helper()
	all, err := b.saysNow(session)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// saysNow is says where a node may have to be asked again.
func (b *box) saysNow(session string) (all []string, err error) {
	status, raw, _ := b.raw("GET", "/v1/sessions/"+session+"/messages", "")
	var out struct {
		Messages []struct {
			Role  string
			Parts []struct{ Text string }
		}
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("the messages of %s: %d %s", session, status, raw)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	for _, m := range out.Messages {
		for _, p := range m.Parts {
			all = append(all, m.Role+": "+p.Text)
		}
	}
	return all, nil
}

// tells sends a message to a session, and waits until the model has answered it.
func (b *box) tells(session, text string) {
	b.t.Helper()
	if status, out := b.v1("POST", "/sessions/"+session+"/messages", message("user", text)); status != http.StatusAccepted {
		b.t.Fatalf("a message to %s: %d %v", session, status, out)
	}
	eventually.True(b.t, "the model answers", func() bool {
		all := b.says(session) // the last one first
		return len(all) > 1 && strings.HasPrefix(all[0], "assistant: ") && all[1] == "user: "+text
	})
}

// keeps has the cluster keep all of a session so far: it waits for what is acknowledged, and the end of a turn is not.
func (b *box) keeps(session string) {
	b.t.Helper()
	if status, out := b.v1("POST", "/sessions/"+session+"/messages", message("system", "kept")); status/100 != 2 {
		b.t.Fatalf("a note in %s: %d %v", session, status, out)
	}
}

func message(role, text string) string {
	return fmt.Sprintf(`{"role":%q,"parts":[{"type":"text","text":%q}]}`, role, text)
}

// The session of a node that dies goes on where somebody asks for it, with all that was acknowledged; the
// node gives it up when it is back. So does one that stands still for a while.
func TestClusterTakesOver(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, _ := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	dir := t.TempDir()
	status, made := south.v1("POST", "/sessions", `{"workspace_path":"`+dir+`","title":"long work"}`)
	if status != http.StatusCreated {
		t.Fatalf("a session: %d %v", status, made)
	}
	id := made["session_id"].(string)
	south.tells(id, "one")
	west.tells(id, "two") // which south does

	listed := func(b *member, node string) bool {
		t.Helper()
		status, raw, _ := b.raw("GET", "/v1/sessions", "")
		var out struct {
			Sessions []struct{ ID, Node, Title string }
		}
		if err := json.Unmarshal(raw, &out); status != http.StatusOK || err != nil {
			t.Fatalf("the list: %d %s", status, raw)
		}
		at := []string{}
		for _, s := range out.Sessions {
			if s.ID == id && s.Title == "long work" {
				at = append(at, s.Node)
			}
		}
		return slices.Equal(at, []string{node})
	}
	south.kill()
	eventually.True(t, "the session of a dead node is listed", func() bool { return listed(west, "south") })
	began := time.Now()
	status, got := north.v1("GET", "/sessions/"+id, "")
	if status != http.StatusOK || got["title"] != "long work" || got["workspace_path"] != dir {
		t.Fatalf("the session of a node that was killed: %d %v", status, got)
	}
	t.Logf("north had the session %v after its node was killed", time.Since(began).Round(time.Millisecond))
	if got := strings.Join(north.says(id), "|"); !strings.Contains(got, "user: one") || !strings.Contains(got, "user: two") {
		t.Errorf("it says %q", got)
	}
	west.tells(id, "three")
	if status, got := west.v1("GET", "/sessions/"+id, ""); status != http.StatusOK || got["turn_id"] != nil {
		t.Errorf("on west: %d %v", status, got)
	}

	south.p = south.serve()
	eventually.True(t, "south serves it from north", func() bool { return listed(south, "north") })
	want := strings.Join(north.says(id), "|")
	eventually.True(t, "south says what north says", func() bool { // a 503 while it puts its own copy away
		got, err := south.saysNow(id)
		return err == nil && strings.Join(got, "|") == want
	})

	// north stands still, and west takes the session.
	thaw := hosttest.Freeze(t, north.p.Process)
	defer thaw()
	eventually.True(t, "west has it", func() bool {
		status, got := west.v1("GET", "/sessions/"+id, "")
		if status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Fatalf("the session of a node that stands still: %d %v", status, got)
		}
		return status == http.StatusOK
	})
	west.tells(id, "four")
	thaw()
	eventually.True(t, "north gives it up", func() bool {
		status, got := north.v1("GET", "/sessions/"+id, "")
		said, err := north.saysNow(id)
		return status == http.StatusOK && got["last_turn_id"] != nil && err == nil && slices.Contains(said, "user: four")
	})
	north.tells(id, "five")
	want = strings.Join(west.says(id), "|")
	for _, b := range all {
		if got := strings.Join(b.says(id), "|"); got != want || strings.Count(got, "user: ") != 5 {
			t.Errorf("a node says %q, want %q", got, want)
		}
	}
}

// CL-04: a session that was deleted while its node was dead does not come back with that node.
func TestClusterDeletesForGood(t *testing.T) {
	t.Parallel()
	all, _ := newCluster(t, newNATS(t))
	north, south := all[0], all[1]
	_, made := south.v1("POST", "/sessions", `{"workspace_path":"`+t.TempDir()+`"}`)
	id, _ := made["session_id"].(string)
	south.tells(id, "one")
	south.kill()
	eventually.True(t, "north deletes it", func() bool {
		status, _, _ := north.raw("DELETE", "/v1/sessions/"+id, "")
		return status == http.StatusNoContent
	})
	south.p = south.serve()
	eventually.True(t, "south has put it away", func() bool {
		kept, err := filepath.Glob(filepath.Join(south.dir, "d", "tapes", ".archive", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(kept) == 1
	})
	for _, b := range all {
		if status, got := b.v1("GET", "/sessions/"+id, ""); status != http.StatusNotFound {
			t.Errorf("a session that was deleted: %d %v, want 404", status, got)
		}
	}
}
