package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// yaya refuses arguments that cannot be meant as wrong usage, with how to write them.
func TestAddRefusesWhatCannotBeMeant(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"an address of another kind", []string{"add", "a", "ftp://example.com/mcp"}, "http:// and https://, not ftp://"},
		{"a web socket", []string{"add", "a", "ws://example.com/mcp"}, "not ws://"},
		{"an address without a host", []string{"add", "a", "http:///mcp"}, "names no host"},
		{"a quoted command line", []string{"add", "a", "npx -y foo"}, "yaya mcp add a npx -y foo"},
		{"a name with a blank", []string{"add", "a b", "true"}, `the name "a b"`},
		{"a name with a slash", []string{"add", "a/b", "true"}, `the name "a/b"`},
		{"a name that is a flag's", []string{"add", "--", "-a", "true"}, `the name "-a"`},
		{"JSON for a name with a slash", []string{"add-json", "a/b", `{"command":"true"}`}, `the name "a/b"`},
		{"JSON without a name", []string{"add-json", `{"command":"true"}`}, "yaya mcp add-json NAME JSON"},
		{"JSON without a server", []string{"add-json", "a", `{"mcpServers":{}}`}, "has no server"},
		{"JSON that is something else", []string{"add-json", "a", `{"x":{"y":1}}`}, `"x" is not a server entry`},
		{"several servers", []string{"add-json", "c", `{"mcpServers":{"a":{"command":"true"},"b":{"command":"true"}}}`}, "name one of a, b"},
		{"not JSON", []string{"add-json", "a", "nope"}, "not JSON"},
		{"a header for a command", []string{"add", "a", "-H", "Foo: b", "node", "x"}, "--header needs an address"},
		{"an environment for an address", []string{"add", "a", "-e", "A=b", "http://127.0.0.1:1/"}, "--env and --cwd need a command"},
		{"a folder for an address", []string{"add", "a", "http://127.0.0.1:1/", "--cwd", "/"}, "--env and --cwd need a command"},
		{"an unknown source", []string{"import", "nope"}, `"nope" is neither a client nor a file`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := b.run(append([]string{"mcp"}, c.args...)...)
			if exitCode(err) != 2 || !strings.Contains(out, c.want) {
				t.Errorf("yaya mcp %q: got %v, %s; want exit code 2 and %q", c.args, err, out, c.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(b.dir, "c", "mcp.json")); err == nil {
		t.Errorf("something was added: %s", b.mcpFile())
	}
}

// The snippets of READMEs are taken as they are.
func TestAddJSONTakesSnippets(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string // names
	}{
		{"an entry", []string{"x", `{"command":"true"}`}, "x"},
		{"a file", []string{"x", `{"mcpServers":{"x":{"command":"true"}}}`}, "x"},
		{"a file with another name", []string{"x", `{"mcpServers":{"y":{"command":"true"}}}`}, "x"},
		{"a file without a name of yours", []string{`{"mcpServers":{"y":{"command":"true"},"z":{"url":"http://127.0.0.1:1/"}}}`}, "y z"},
		{"one of several", []string{"y", `{"mcpServers":{"y":{"command":"true"},"z":{"command":"true"}}}`}, "y"},
		{"a name around it", []string{"x", `{"y":{"command":"true"}}`}, "x"},
		{"a piece of a file", []string{"x", `"y": {"command":"true", /* why */ },`}, "x"},
		{"the settings of VS Code", []string{"x", `{"mcp":{"servers":{"y":{"command":"true"}}}}`}, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			out := b.must(append([]string{"mcp", "add-json"}, c.args...)...)
			for name := range strings.FieldsSeq(c.want) {
				if !strings.Contains(out, "added "+name+":") {
					t.Errorf("got %q, want that %s was added", out, name)
				}
			}
			if got := strings.Count(out, "added "); got != len(strings.Fields(c.want)) {
				t.Errorf("%d servers were added, want %s", got, c.want)
			}
		})
	}
}

// A server that lacks a variable or its command is added, and what it lacks is said at
// once: by the daemon, which starts it, if there is one.
func TestAddSaysWhatIsMissing(t *testing.T) {
	for _, beside := range []bool{true, false} {
		t.Run(map[bool]string{true: "beside a daemon", false: "alone"}[beside], func(t *testing.T) {
			b := newBox(t)
			if beside {
				b.serve()
			}
			for _, c := range []struct {
				name string
				args []string
				want []string
			}{
				{"a command", []string{"add", "a", "no-such-command-1"}, []string{`command "no-such-command-1" was not found in PATH`, "install it"}},
				{"a file", []string{"add", "b", "/nonexistent/x"}, []string{"there is no file /nonexistent/x"}},
				{"variables", []string{"add", "c", "sh", "${NOT_SET_1}", "${NOT_SET_2}", "${NOT_SET_3:-x}"}, []string{"variable NOT_SET_1 is not set", "variable NOT_SET_2 is not set"}},
				{"an address without its scheme", []string{"add", "d", "example.com/mcp"}, []string{"https://"}},
				{"a command line in JSON", []string{"add-json", "e", `{"command":"npx -y foo"}`}, []string{`the command is "npx"`, "args"}},
			} {
				out := b.must(append([]string{"mcp"}, c.args...)...)
				for _, want := range append(c.want, "added ") {
					if !strings.Contains(out, want) {
						t.Errorf("%s: got %q, want %q in it", c.name, out, want)
					}
				}
				if strings.Contains(out, "NOT_SET_3") && c.name == "variables" && strings.Contains(out, "NOT_SET_3 is not set") {
					t.Errorf("a variable with a default is missing: %s", out)
				}
			}
			file := filepath.Join(b.dir, "theirs.json")
			if err := os.WriteFile(file, []byte(`{"mcpServers":{"f":{"command":"sh","env":{"K":"${env:NOT_SET_4}"}}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			if out := b.must("mcp", "import", "--yes", file); !strings.Contains(out, "variable NOT_SET_4 is not set") {
				t.Errorf("import: got %q, want NOT_SET_4 in it", out)
			}
		})
	}
}

// Of several servers all are added, or none.
func TestAddJSONAddsAllOrNone(t *testing.T) {
	b := newBox(t)
	b.must("mcp", "add", "there", "true")
	before := b.mcpFile()
	out, err := b.run("mcp", "add-json", `{"mcpServers":{"new":{"command":"true"},"there":{"command":"false"}}}`)
	if exitCode(err) != 1 || !strings.Contains(out, `the server "there" exists already`) || !strings.Contains(out, "nothing was added") {
		t.Errorf("got %v, %s; want exit code 1, the name that is taken, and that nothing was added", err, out)
	}
	if got := b.mcpFile(); got != before {
		t.Errorf("the file is\n%s\nwant\n%s", got, before)
	}
}

// What JSON of other clients means here, and what is left out of it, is said.
func TestAddJSONSaysWhatChanges(t *testing.T) {
	b := newBox(t)
	out := b.must("mcp", "add-json", "slow", `{"command":"true","timeout":5,"autoApprove":["x"]}`)
	for _, want := range []string{"note: timeout 5 counts milliseconds: it is tool_timeout_sec 0.005", `note: "autoApprove" is not imported`} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q in it", out, want)
		}
	}
}
