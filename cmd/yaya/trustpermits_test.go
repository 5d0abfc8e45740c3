package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
)

// A folder that changes is asked about again, and its servers then have what was allowed to
// them before: the question says so, in the words in which their own view does.
func TestTrustAgainShowsPermits(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws, notes := filepath.Join(b.dir, "ws"), filepath.Join(b.dir, "notes")
	if err := errors.Join(os.MkdirAll(ws, 0o700), os.MkdirAll(notes, 0o700), os.WriteFile(filepath.Join(ws, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"cat"},"plain":{"command":"cat","args":["-"]}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	if out, said, code := b.in(ws, "mcp", "allow", "theirs", "--write", notes, "--host", "example.org"); code != 0 {
		t.Fatalf("yaya mcp allow: %s%s", out, said)
	}
	if out := b.must("trust", ws); !strings.Contains(out, "is trusted") {
		t.Fatalf("a permit counts as a change of the folder: got %q", out)
	}
	if err := os.WriteFile(filepath.Join(ws, "AGENTS.md"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	const may = "server theirs: in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, and "
	more := "; writes " + notes + "; reaches example.org"
	out, _ := b.run("trust", ws)
	_, allowed, found := strings.Cut(out, "You have allowed its servers more, which applies again:\n")
	if allowed, _, _ = strings.Cut(allowed, "\nChanges and commands"); !found || !strings.Contains(allowed, may+ws+more) || strings.Contains(allowed, "plain") {
		t.Errorf("the question shows as allowed %q, want %q of theirs alone; all of it:\n%s", allowed, more, out)
	}
	var v view
	if err := json.Unmarshal([]byte(b.must("trust", "--json", ws)), &v); err != nil || len(v.Allowed) != 1 || !strings.HasSuffix(v.Allowed[0].Runs, more) {
		t.Errorf("yaya trust --json shows as allowed %+v, %v; want %q", v.Allowed, err, more)
	}
	b.must("trust", "--yes", ws)
	b.must("trust", "revoke", ws)
	if out, _ := b.run("trust", ws); strings.Contains(out, "You have allowed") {
		t.Errorf("what was allowed is forgotten with the folder's trust: got %q", out)
	}
}

// Trust that is given away from yaya's own folder starts nothing: who gives it is told what
// happens with the folder's servers.
func TestTrustSaysWhatItsServersDo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws, here, plain := filepath.Join(b.dir, "ws"), filepath.Join(b.dir, "here"), filepath.Join(b.dir, "plain")
	for _, dir := range []string{ws, here} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers":{"`+filepath.Base(dir)+`s":{"command":"cat"}}}`), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	says := func(dir, want string) {
		t.Helper()
		if got, want := b.must("trust", "--yes", dir), "The folder "+dir+" is trusted.\n"+want; !strings.HasSuffix(got, want) {
			t.Errorf("yaya trust --yes %s says %q, want %q at its end", dir, got, want)
		}
	}
	says(ws, "Its servers (wss) start when you start yaya in that folder.\n")
	b.must("trust", "revoke", ws)
	b.cwd = here
	b.serve()
	says(ws, "Its servers (wss) did not start, because yaya runs in "+here+". To start them, stop yaya and start it in "+ws+".\n")
	says(ws, "Its servers (wss) did not start, because yaya runs in "+here+". To start them, stop yaya and start it in "+ws+".\n") // trusted already
	says(here, "yaya runs in that folder. To see the state of its servers (heres): yaya mcp list\n")
	says(plain, "")
}

// A path that is allowed twice, in other spellings, is kept once.
func TestAllowKeepsAPathOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := newBox(t)
	ws, notes := filepath.Join(b.dir, "ws"), filepath.Join(b.dir, "notes")
	if err := errors.Join(os.MkdirAll(ws, 0o700), os.MkdirAll(notes, 0o700), os.WriteFile(filepath.Join(ws, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"cat"}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	b.must("mcp", "add-json", "own", `{"command":"cat","sandbox":{}}`)
	for _, server := range []string{"own", "theirs"} {
		for _, name := range []string{notes + "/", notes, notes + "/./", "~/notes"} {
			if out, said, code := b.in(ws, "mcp", "allow", server, "--read", name); code != 0 {
				t.Fatalf("yaya mcp allow %s --read %s: %s%s", server, name, out, said)
			}
		}
		out, said, code := b.in(ws, "mcp", "get", server, "--json")
		var s admin.Server
		if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
			t.Fatalf("got %v, %v, %v, want code 0, no error", out, said, err)
		}
		if n := strings.Count(s.Sandbox.Allowed, "notes"); n != 1 || strings.Contains(s.Sandbox.Allowed, notes+"/") {
			t.Errorf("%s may read %q, want the folder once, without a slash", server, s.Sandbox.Allowed)
		}
		if out, said, code := b.in(ws, "mcp", "allow", server, "--read", notes+"/", "--remove"); code != 0 || strings.Contains(out, "nothing changed") {
			t.Errorf("%s: it cannot be taken back: %s%s", server, out, said)
		}
	}
}
