package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

const isOff = "the sandbox is off: it has all rights of your user"

// yaya enforces for a folder's server what people were shown and checked. A server that
// was agreed to in a sandbox does not run without one until somebody agrees to that.
func TestWeakerThanAgreed(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := shellServers(t)
	b.must("config", "set", "plugin.tool_shell.verify", `["make check"]`)
	b.must("trust", "--yes", b.cwd)
	b.serve()
	b.firstStart([]string{"own", "bounded", "theirs"})
	if out := b.must("mcp", "get", "theirs"); strings.Contains(out, isOff) {
		t.Errorf("yaya mcp get says that the sandbox is off:\n%s", out)
	}
	b.must("config", "set", "sandbox.mode", "off")
	const more = `server "theirs" would have more rights than you agreed to (` + isOff + ")"
	eventually.True(t, "theirs waits", func() bool {
		out := b.must("mcp", "get", "theirs")
		return !strings.Contains(out, "ready") && strings.Contains(out, more) && strings.Contains(out, "yaya trust "+b.cwd)
	})
	if out, failed := b.sh("theirs", "echo ran"); !failed || !strings.Contains(out, more) {
		t.Errorf("a call: got %q, want it refused, and why", out)
	}
	question, err := b.run("trust", b.cwd)
	if err == nil || !strings.Contains(question, "server theirs: node shell.mjs, "+isOff) || !strings.Contains(question, "check: make check, "+isOff) {
		t.Errorf("the question is %q, %v; want that the sandbox is off", question, err)
	}
	var look struct {
		Trusted bool
		Items   []admin.Item
	}
	b.admin("GET", "/folders/look?path="+url.QueryEscape(b.cwd), "", 200, &look)
	for _, i := range look.Items {
		if look.Trusted || !strings.Contains(i.Runs, isOff) {
			t.Errorf("/api/folders/look shows %+v (trusted: %v), want that the sandbox is off", i, look.Trusted)
		}
	}
	b.must("trust", "--yes", b.cwd)
	eventually.True(t, "theirs runs once it is agreed to", func() bool {
		said, failed := b.sh("theirs", "echo ran")
		return !failed && strings.Contains(said, "ran")
	})
	for _, server := range []string{"own", "bounded", "theirs"} {
		if out := b.must("mcp", "get", server); !strings.Contains(out, isOff+"; with a sandbox, in sandbox profile ") {
			t.Errorf("yaya mcp get %s does not say that the sandbox is off:\n%s", server, out)
		}
	}
	if out, err := b.run("mcp", "allow", "own", "--host", "a.example"); err == nil || !strings.Contains(out, isOff) {
		t.Errorf("a permit for a server without a sandbox: got %q, %v", out, err)
	}
	// A sandbox that enforces more than was agreed to is not asked about.
	b.must("config", "unset", "sandbox.mode")
	eventually.True(t, "theirs runs in a sandbox again", func() bool {
		return strings.Contains(b.must("mcp", "get", "theirs"), "back end namespaces")
	})
	if out := b.must("trust", b.cwd); !strings.Contains(out, "is trusted") {
		t.Errorf("the folder is asked about again: %s", out)
	}
}

// A yaya that starts with less than was agreed to does not start the folder's server,
// says why in each place, and starts it once more is enforced again.
func TestWeakerAtTheStart(t *testing.T) {
	t.Parallel()
	b := shellServers(t) // which trusts the folder
	b.must("config", "set", "sandbox.mode", "off")
	const more = "would have more rights than you agreed to"
	if out, _, _ := b.in(b.cwd, "mcp", "approve"); !strings.Contains(out, more) || !strings.Contains(out, "it would run: node shell.mjs, "+isOff) {
		t.Errorf("yaya mcp approve says %q, want that the sandbox is off", out)
	}
	b.serve()
	b.firstStart([]string{"own", "bounded"})
	var waiting []admin.Waiting
	b.admin("GET", "/mcp/quarantine", "", 200, &waiting)
	if len(waiting) != 1 || !strings.Contains(waiting[0].Reason, more) || !strings.Contains(waiting[0].Runs, isOff) {
		t.Errorf("what waits is %+v, want theirs, and that the sandbox is off", waiting)
	}
	if s := b.server("theirs", "waiting"); !strings.Contains(s.Reason, more) {
		t.Errorf("theirs waits with %q", s.Reason)
	}
	b.must("config", "unset", "sandbox.mode")
	b.server("theirs", "ready")
}

// A server that waits because something else of its folder has changed says what.
func TestOtherItemHasChanged(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := shellServers(t)
	brings := `{"mcpServers":{"theirs":{"command":"node","args":["shell.mjs"]},"other":{"command":"sh","args":["other.sh"]}}}`
	for name, data := range map[string]string{".mcp.json": brings, "other.sh": "exit 1"} {
		if err := os.WriteFile(filepath.Join(b.cwd, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.must("trust", "--yes", b.cwd)
	b.serve()
	b.server("theirs", "ready")
	if err := os.WriteFile(filepath.Join(b.cwd, "other.sh"), []byte("exit 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.kill("theirs")
	const why = `you have not trusted that folder as it is now: server "other" has changed`
	b.refuses("theirs", why+": yaya trust "+b.cwd)
	if out, _, _ := b.in(b.cwd, "mcp", "approve"); !strings.Contains(out, `server "other" has changed`) {
		t.Errorf("yaya mcp approve says %q, want what has changed", out)
	}
}
