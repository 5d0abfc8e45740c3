package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

// CL-04: a node stands still in the middle of a turn, and another one takes the session over. When it goes on, the
// model's answer has come; the tool that this calls is not run, and the turn is over on the other node. The queue
// goes on there.
func TestClusterFencesTurns(t *testing.T) {
	t.Parallel()
	all, _ := newCluster(t, newNATS(t))
	north, west := all[0], all[2]
	slow := fakellm.New(
		fakellm.Step{Delay: 1500 * time.Millisecond, ToolCalls: []fakellm.Call{{Name: "repo_tree", Args: `{}`}}}, // of north
		fakellm.Step{Text: "of the queue"}, // of west
		fakellm.Step{Text: "of nobody"},
	)
	defer slow.Close()
	north.provider(slow)
	west.provider(slow)
	dir := t.TempDir()
	_, made := north.v1("POST", "/sessions", `{"workspace_path":"`+dir+`"}`)
	id, _ := made["session_id"].(string)
	for _, body := range []string{`{"role":"user","parts":[{"type":"text","text":"one"}]}`, `{"role":"user","delivery":"queue","parts":[{"type":"text","text":"two"}]}`} {
		if status, out := north.v1("POST", "/sessions/"+id+"/messages", body); status != http.StatusAccepted {
			t.Fatalf("a message: %d %v", status, out)
		}
	}
	eventually.True(t, "the model is asked", func() bool { return len(slow.Requests()) == 1 })
	thaw := hosttest.Freeze(t, north.p.Process)
	defer thaw()
	eventually.True(t, "west goes on with the queue", func() bool {
		status, _ := west.v1("GET", "/sessions/"+id, "")
		return status == http.StatusOK && slices.Contains(west.says(id), "assistant: of the queue")
	})
	want := strings.Join(west.says(id), "|")
	thaw()
	eventually.True(t, "north asks west for it", func() bool {
		got, err := north.saysNow(id) // 503, "try again", while it puts its own away
		return err == nil && strings.Join(got, "|") == want
	})
	if status, raw, _ := north.raw("GET", "/v1/sessions", ""); status != http.StatusOK || strings.Count(string(raw), id) != 1 {
		t.Errorf("the list of north: %d %s; want the session once", status, raw)
	}
	if n := len(slow.Requests()); n != 2 {
		t.Errorf("the model was asked %d times, want twice: once by north, and once by west", n)
	}
	if left, err := filepath.Glob(filepath.Join(north.dir, "d", "arriving", "*")); err != nil || len(left) > 0 {
		t.Errorf("north has left %v, %v", left, err)
	}
}

// A fork of a session that was on a dead node has the history of both, and its files.
func TestClusterTakesForks(t *testing.T) {
	t.Parallel()
	all, _ := newCluster(t, newNATS(t))
	north, south := all[0], all[1]
	dir := t.TempDir()
	_, made := south.v1("POST", "/sessions", `{"workspace_path":"`+dir+`"}`)
	id, _ := made["session_id"].(string)
	south.tells(id, "one")
	status, up := south.v1("POST", "/sessions/"+id+"/attachments", `{"name":"note.txt","data":"aGVsbG8="}`)
	if status != http.StatusCreated && status != http.StatusOK {
		t.Fatalf("an attachment: %d %v", status, up)
	}
	status, fork := south.v1("POST", "/sessions/"+id+"/fork", "")
	child, _ := fork["id"].(string)
	if status != http.StatusCreated || child == "" {
		t.Fatalf("a fork: %d %v", status, fork)
	}
	south.tells(child, "two")
	south.tells(id, "three")
	for _, s := range []string{id, child} {
		south.keeps(s)
	}
	want := strings.Join(south.says(child), "|")
	south.kill()
	eventually.True(t, "north takes the fork over", func() bool {
		status, _ := north.v1("GET", "/sessions/"+child, "")
		return status == http.StatusOK
	})
	if got := strings.Join(north.says(child), "|"); got != want || !strings.Contains(got, "user: one") {
		t.Errorf("the fork says %q, want %q", got, want)
	}
	north.tells(child, "four")
	if got := strings.Join(north.says(id), "|"); !strings.Contains(got, "user: three") || strings.Contains(got, "user: two") {
		t.Errorf("the session that it was forked from says %q", got)
	}
	for _, s := range []string{id, child} {
		files, err := filepath.Glob(filepath.Join(north.dir, "d", "sessions", s, "attachments", "*"))
		if err != nil || len(files) != 1 {
			t.Errorf("%s has the attachments %v, %v; want one", s, files, err)
		}
	}
}
