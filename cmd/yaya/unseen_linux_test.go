package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// A server that is given a folder which its sandbox hides often says no more than that it
// found nothing: which folder, and what allows it, stands in its logs, its state, the list
// of servers and the error of its calls, whether it starts or not. Once the folder is
// allowed, the server works.
func TestServerIsGivenWhatItDoesNotSee(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	needNamespaces(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	b := newBox(t)
	docs, script := filepath.Join(b.dir, "docs"), filepath.Join(b.dir, "p", "shell.mjs")
	source, err := os.ReadFile("testdata/shell.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(docs, 0o700), os.MkdirAll(filepath.Dir(script), 0o700), os.WriteFile(script, source, 0o600)); err != nil {
		t.Fatal(err)
	}
	b.must("mcp", "add-json", "runs", string(jsonOf(t, map[string]any{"command": node, "args": []string{script, docs}, "sandbox": map[string]any{}})))
	b.must("mcp", "add-json", "ends", string(jsonOf(t, map[string]any{"command": "sh", "args": []string{"-c", `test -d "$1" || { echo nothing to do >&2; exit 1; }; exec "$2" "$3"`, "sh", docs, node, script}, "sandbox": map[string]any{"read": []string{script}}})))
	b.must("mcp", "add-json", "fine", string(jsonOf(t, map[string]any{"command": node, "args": []string{script, "/usr", filepath.Join(b.dir, "nowhere")}, "sandbox": map[string]any{}})))
	b.serve()
	eventually.True(t, "two have started, and one has failed", func() bool {
		is := map[string]feature.State{}
		for _, st := range b.status().Servers {
			is[st.ID] = st.State
		}
		return is["runs"] == feature.Ready && is["fine"] == feature.Ready && is["ends"] == feature.Failed
	})

	for _, server := range []string{"runs", "ends"} {
		what := `server "` + server + `" does not see ` + docs + `, which its entry names (profile server)`
		allow := "yaya mcp allow " + server + " --read " + docs
		if logs := b.must("mcp", "logs", server); !strings.Contains(logs, what) || !strings.Contains(logs, "Allow it: "+allow) {
			t.Errorf("the logs of %s are %q, want %q and %q", server, logs, what, allow)
		}
		if said, failed := b.sh(server, "echo it is not there; false"); server == "ends" && (!failed || !strings.Contains(said, what) || !strings.Contains(said, allow)) {
			t.Errorf("a call of %s says %q, want %q and %q", server, said, what, allow)
		}
		if said, failed := b.sh(server, "echo no repository: "+docs+"; false"); !failed || !strings.Contains(said, what) || !strings.Contains(said, allow) {
			t.Errorf("a call of %s that names the folder says %q, want %q and %q", server, said, what, allow)
		}
		var s admin.Server
		if err := json.Unmarshal([]byte(b.must("mcp", "get", server, "--json")), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Sandbox.Denied) != 1 || !strings.HasPrefix(s.Sandbox.Denied[0].What, what) || s.Sandbox.Denied[0].Allow != allow {
			t.Errorf("yaya mcp get %s: kept from %+v, want %q and %q", server, s.Sandbox.Denied, what, allow)
		}
		if text := b.must("mcp", "get", server); server == "runs" && (s.Calls.Total != 2 || s.Calls.Errors != 2 || !strings.Contains(text, "2, of which 2 failed or were refused")) {
			t.Errorf("yaya mcp get %s counts %+v after 2 calls that failed; it says:\n%s", server, s.Calls, text)
		}
		list := b.must("mcp", "list")
		if !strings.Contains(list, ", kept from 1 ") || !strings.Contains(list, "kept from: "+what) || !strings.Contains(list, "allow it: "+allow) {
			t.Errorf("yaya mcp list says %q, want the mark of %s, %q and %q", list, server, what, allow)
		}
		for _, st := range b.status().Servers {
			if d := daemon.DetailOf(st); server == "runs" && st.ID == server && (d.Calls != 2 || d.Errors != 2) {
				t.Errorf("yaya mcp list --json: %s counts %d calls, of which %d failed; want 2 and 2", server, d.Calls, d.Errors)
			}
			if d := daemon.DetailOf(st); st.ID == server && (len(d.Denied) != 1 || d.Denied[0].What != s.Sandbox.Denied[0].What || d.Denied[0].Allow != allow) {
				t.Errorf("yaya mcp list --json: %s was kept from %+v, want what yaya mcp get says: %+v", server, d.Denied, s.Sandbox.Denied)
			}
		}
		b.must("mcp", "allow", server, "--read", docs)
		eventually.True(t, server+" sees the folder", func() bool {
			said, failed := b.sh(server, "ls -d "+docs)
			return !failed && strings.Contains(said, docs)
		})
		if out := b.must("mcp", "get", server); strings.Contains(out, "kept from") {
			t.Errorf("%s is kept from nothing, and yaya mcp get says:\n%s", server, out)
		}
	}
	if out := b.must("mcp", "get", "fine"); strings.Contains(out, "kept from") {
		t.Errorf("a server with paths that it sees, or that are not there, is kept from something:\n%s", out)
	}
}
