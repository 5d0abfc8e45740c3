package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// The doctor fails when a server has failed or cannot be used, and says which.
func TestDoctorFailsWithAServer(t *testing.T) {
	for _, c := range []struct{ name, entry string }{
		{"it ends", `{"command":"sh","args":["-c","exit 3"]}`},
		{"its command is not there", `{"command":"/nonexistent/server"}`},
		{"its variable is not set", `{"command":"sh","args":["${NOT_SET_ANYWHERE}"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			good, _ := b.recorded("good")
			b.must(append([]string{"mcp", "add", "good"}, good...)...)
			if out, err := b.run("doctor"); err != nil {
				t.Errorf("with a server that works: %v, %s", err, out)
			}
			b.must("mcp", "add-json", "broken", c.entry)
			out, err := b.run("doctor")
			if exitCode(err) != 1 || !strings.HasSuffix(out, "yaya: failed: broken\n") {
				t.Errorf("got %v, %s; want exit code 1 and which server has failed", err, out)
			}
		})
	}
}

// On a fresh installation doctor says each thing once, and in words for people.
func TestDoctorOfAFreshYaya(t *testing.T) {
	b := newBox(t)
	out := b.must("doctor")
	if n := strings.Count(out, "providers.llm-openai.api_key"); n != 1 || strings.Contains(out, "no checks registered") {
		t.Errorf("the missing key is reported %d times, want once, and no plugin without checks as such:\n%s", n, out)
	}
}

// A secret in a server's command line is warned of wherever the server is added or shown, and by
// doctor and the start, with the server, the secret and the remedy.
func TestSecretsInCommandLinesAreToldOf(t *testing.T) {
	b := newBox(t)
	value := filepath.Join(b.dir, "value")
	if err := os.WriteFile(value, []byte("q7Zt-0pLm-33xV"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("secret", "set", "tok", "--file", value)
	words, _ := b.recorded("open")
	const want = "every user of this machine can read the secret tok in its command line: pass it in env"
	added := b.must(append(append([]string{"mcp", "add", "open"}, words...), "--token=${secret:tok}")...)
	for where, said := range map[string]string{"mcp add": added, "mcp get": b.must("mcp", "get", "open"), "doctor": b.must("doctor")} {
		if n := strings.Count(said, want); n != 1 || !strings.Contains(said, "open") {
			t.Errorf("%s names the secret %d times, want once, with the server:\n%s", where, n, said)
		}
	}
	serve := b.daemon("serve", "--listen", b.addr)
	eventually.True(t, "the start warns", func() bool { return strings.Contains(serve.said.String(), want) })
}

// Doctor names the broken files of sub-agents of the folder that it runs in, beside a yaya that works
// elsewhere as well; those of a folder that is not trusted are not read.
func TestDoctorReadsSubAgentsOfItsFolder(t *testing.T) {
	t.Parallel()
	for kind, daemon := range map[string]bool{"alone": false, "beside a daemon": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			ws := b.folder("project")
			if err := os.MkdirAll(filepath.Join(ws, ".yaya", "agents"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, line := range map[string]string{"broken": "colour: red", "foreign": "tools: Read, Bash", "fine": "tools: read_file"} {
				if err := os.WriteFile(filepath.Join(ws, ".yaya", "agents", name+".md"), []byte("---\ndescription: x\n"+line+"\n---\nBe strict.\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if daemon {
				b.serve()
			}
			if out, said, code := b.in(ws, "doctor"); code != 0 || strings.Contains(out, "broken.md") {
				t.Errorf("in a folder that is not trusted: %d, %s, %s; want nothing of its files", code, out, said)
			}
			b.must("trust", "--yes", ws)
			out, said, code := b.in(ws, "doctor")
			for _, want := range []string{"files of sub-agents: 1; broken: 2", "broken.md", `unknown key "colour"`, "foreign.md", `tools has "Read"`} {
				if code != 0 || strings.Count(out, want) != 1 {
					t.Errorf("in the folder: %d, %s, %s; want %q once", code, out, said, want)
				}
			}
		})
	}
}
