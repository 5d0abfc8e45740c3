package clients_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/clients"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func all(t *testing.T) []clients.Client {
	t.Helper()
	list := clients.All(servers.Locations("/h", "linux", func(string) string { return "" }))
	if len(list) < 18 {
		t.Fatalf("got %d clients, want 18 at least", len(list))
	}
	return list
}

var (
	local  = clients.Spec{Command: "/usr/local/bin/yaya", Args: []string{"mcp", "serve"}}
	remote = clients.Spec{URL: "https://y.example/mcp", Token: "yt_0123-abc"}
)

// originals are files of a client before yaya is in them, by name.
func originals(c clients.Client) map[string]string {
	switch filepath.Ext(c.Paths[0]) {
	case ".toml":
		return map[string]string{
			"empty":           "",
			"of other things": "# mine\nmodel = \"x\"\n",
			"without its end": "model = \"x\"",
			"with servers":    "model = \"x\" # a comment\n\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\n  \"[b]\",\n]\n\n# of the next\n[profiles.p]\nmodel = \"y\"\n",
			"of Windows":      "model = \"x\"\r\n[mcp_servers.a]\r\ncommand = \"x\"\r\n",
		}
	case ".yaml":
		if c.ID == "continue" {
			return map[string]string{
				"empty":           "",
				"of other things": "name: mine # a comment\nversion: 0.0.1\n",
				"with servers":    "name: mine\nmcpServers:\n  # first\n  - name: a\n    command: x\n\n  - name: b\n    command: y\nmodels: []\n",
				"not indented":    "mcpServers:\n- name: a\n  command: x\nmodels: []\n",
				"an empty list":   "mcpServers: []\nmodels: []\n",
			}
		}
		return map[string]string{
			"empty":           "",
			"of other things": "GOOSE_MODEL: x # a comment\n",
			"with servers":    "GOOSE_MODEL: x\nextensions:\n    # first\n    a:\n        type: stdio\n        cmd: x\n\n    b: {type: builtin}\nafter: 1\n",
			"an empty object": "extensions: {}\nafter: 1\n",
			"nothing in it":   "extensions:\nafter: 1",
			"of Windows":      "extensions:\r\n  a:\r\n    cmd: x\r\n",
		}
	}
	top := map[string]string{"vscode": "servers", "jetbrains": "servers", "zed": "context_servers", "opencode": "mcp", "crush": "mcp"}[c.ID]
	if top == "" {
		top = "mcpServers"
	}
	a := `{"command": "x", "args": ["{", "//"]}`
	if c.ID == "opencode" {
		a = `{"type": "local", "command": ["x", "//"]}`
	}
	return map[string]string{
		"empty":                          "",
		"an empty object":                "{}\n",
		"of other things":                "{\n  // mine\n  \"theme\": \"dark\" // and its reason\n}\n",
		"with servers":                   "{\n    \"" + top + "\": {\n        \"a\": " + a + "\n    },\n    \"theme\": \"dark\"\n}\n",
		"with a comma at the end":        "{\n\t\"" + top + "\": {\n\t\t\"a\": " + a + ", // the first\n\t\t// \"b\": {},\n\t},\n}\n",
		"an empty object of servers":     "{\n  \"x\": 1,\n  \"" + top + "\": {}\n}",
		"an object with a comment":       "{\n  \"" + top + "\": {\n    // none as yet\n  }\n}",
		"on one line":                    `{"numStartups":3,"` + top + `":{"a":` + a + `},"z":[1,2]}`,
		"on one line, without servers":   `{"numStartups":3}`,
		"on one line, servers empty":     `{"` + top + `":{}}`,
		"of Windows, with its mark":      "\xef\xbb\xbf{\r\n  \"" + top + "\": {\r\n    \"a\": " + a + "\r\n  }\r\n}\r\n",
		"a brace beside the last member": "{\"" + top + "\": {\n  \"a\": " + a + "},\n\"z\": 1}\n",
	}
}

// The reader of a client reads the added entry as yaya's. The entry is added once, and
// everything else stays. Removing the entry restores the file as it was.
func TestAddAndRemove(t *testing.T) {
	for _, c := range all(t) {
		for name, before := range originals(c) {
			for kind, spec := range map[string]clients.Spec{"command": local, "address": remote} {
				t.Run(c.ID+"/"+kind+"/"+name, func(t *testing.T) {
					e, err := c.Add([]byte(before), spec)
					if c.ID == "claude-desktop" && kind == "address" {
						if err == nil || !strings.Contains(err.Error(), "connectors") {
							t.Errorf("got %v, want it refused with the reason", err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if e.Was != "" || e.Now == "" {
						t.Errorf("the change is shown as %q to %q, want it new", e.Was, e.Now)
					}
					s, found, err := c.Entry(e.Data)
					switch {
					case err != nil || !found:
						t.Fatalf("not found (%v) in\n%s", err, e.Data)
					case kind == "command" && (s.Command != local.Command || !reflect.DeepEqual(s.Args, local.Args) || s.Disabled):
						t.Errorf("read as %+v", s)
					case kind == "address" && (s.URL != remote.URL || s.Headers["Authorization"] != "Bearer "+remote.Token || s.Transport != servers.HTTP || s.Disabled):
						t.Errorf("read as %+v", s)
					}
					if got, want := others(t, c, e.Data), others(t, c, []byte(before)); !reflect.DeepEqual(got, want) {
						t.Errorf("the others became %v, want %v", got, want)
					}
					again, err := c.Add(e.Data, spec)
					if err != nil || !bytes.Equal(again.Data, e.Data) || again.Was != again.Now {
						t.Errorf("added twice: %v\n%s", err, again.Data)
					}
					moved := spec
					moved.Command, moved.Token = strings.Replace(spec.Command, "local", "other", 1), strings.Replace(spec.Token, "0", "9", 1)
					if m, err := c.Add(e.Data, moved); err != nil || m.Was == m.Now || m.Was == "" {
						t.Errorf("changed: %+v, %v", m, err)
					} else if back, err := c.Add(m.Data, spec); err != nil || !bytes.Equal(back.Data, e.Data) {
						t.Errorf("changed back: %v, got\n%s\nwant\n%s", err, back.Data, e.Data)
					}
					r, err := c.Remove(e.Data, []byte(before))
					if err != nil || (string(r.Data) != before && before != "") {
						t.Errorf("removed: %v, got\n%q\nwant\n%q", err, r.Data, before)
					}
					r, err = c.Remove(e.Data, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, found, err := c.Entry(r.Data); found || err != nil {
						t.Errorf("still there (%v):\n%s", err, r.Data)
					}
					if got, want := others(t, c, r.Data), others(t, c, []byte(before)); !reflect.DeepEqual(got, want) {
						t.Errorf("without it the others are %v, want %v", got, want)
					}
				})
			}
		}
	}
}

// others are the names of the servers of a file, without yaya.
func others(t *testing.T, c clients.Client, data []byte) []string {
	t.Helper()
	cfg, err := servers.Parse(c.Paths[0], data, c.Format)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, s := range cfg.Servers {
		if s.Name != servers.OwnName {
			out = append(out, fmt.Sprint(s.Name, s.Command, s.Args))
		}
	}
	return out
}

// USE-2: a file that Add made, and that has nothing else in it, is reported as such; one
// that has been touched, or that was there before, is not.
func TestRemoveTellsWhatItMade(t *testing.T) {
	for _, c := range all(t) {
		for kind, spec := range map[string]clients.Spec{"command": local, "address": remote, "address without a token": {URL: remote.URL}} {
			e, err := c.Add(nil, spec)
			if c.ID == "claude-desktop" && spec.URL != "" {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, r := range map[string]struct {
				data, before []byte
				want         bool
			}{
				"as it was made":    {e.Data, nil, true},
				"of what was empty": {e.Data, []byte{}, false},
				"touched":           {append([]byte("\n"), e.Data...), nil, false},
				"with other things": {[]byte(withMore(c, string(e.Data))), nil, false},
			} {
				got, err := c.Remove(r.data, r.before)
				if err != nil || got.Gone != r.want {
					t.Errorf("%s, %s, %s: got %v, %v, want %v", c.ID, kind, name, got.Gone, err, r.want)
				}
			}
		}
	}
}

// withMore is a file with something else in it.
func withMore(c clients.Client, data string) string {
	switch filepath.Ext(c.Paths[0]) {
	case ".toml":
		return "model = \"x\"\n" + data
	case ".yaml":
		return data + "other: 1\n"
	}
	return strings.Replace(data, "{", `{"other": 1, `, 1)
}

// Even without a backup, removing the entry restores the other text as far as the text shows
// what it was.
func TestRemoveKeepsTheText(t *testing.T) {
	for _, c := range all(t) {
		before := originals(c)["with servers"]
		e, err := c.Add([]byte(before), local)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := c.Remove(e.Data, nil); err != nil || string(r.Data) != before {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", c.ID, err, r.Data, before)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	by := map[string]clients.Client{}
	for _, c := range all(t) {
		by[c.ID] = c
	}
	for _, c := range []struct {
		name, client, data string
		spec               clients.Spec
		want               string
	}{
		{"a broken file", "cursor", `{"mcpServers": {`, local, "mcp.json"},
		{"a broken TOML file", "codex", "a = ", local, "config.toml"},
		{"a broken YAML file", "goose", "a: [", local, "config.yaml"},
		{"servers that are not an object", "cursor", `{"mcpServers": 7}`, local, "must be an object"},
		{"a member twice", "zed", `{"context_servers": {}, "context_servers": {}}`, local, "twice"},
		{"another server of the name", "cursor", `{"mcpServers": {"yaya": {"command": "other"}}}`, local, "runs other"},
		{"an entry that is broken", "cursor", `{"mcpServers": {"yaya": {"command": 7}}}`, local, "cannot be read"},
		{"servers in braces", "goose", "extensions: {a: {cmd: x}}\n", local, "in braces"},
		{"an inline table", "codex", "mcp_servers = {a = {command = \"x\"}}\n", local, ""},
		{"an entry in an inline table", "codex", "[mcp_servers]\nyaya = {command = \"/old/yaya\", args = [\"mcp\", \"serve\"]}\n", local, ""},
		{"a path with a variable", "gemini", "", clients.Spec{Command: "/opt/$x/yaya", Args: []string{"mcp", "serve"}}, "variable"},
		{"not an address", "cursor", "", clients.Spec{URL: "ftp://x"}, "not an http"},
		{"a token in the open", "cursor", "", clients.Spec{URL: "http://y.example/mcp", Token: "t"}, "plain text"},
		{"a token of two lines", "cursor", "", clients.Spec{URL: "https://y.example/mcp", Token: "a\nb"}, "characters"},
	} {
		e, err := by[c.client].Add([]byte(c.data), c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error about %q\n%s", c.name, err, c.want, e.Data)
		}
	}
}

// An edit of any file is refused, or changes only yaya's entry.
func FuzzEdit(f *testing.F) {
	list := clients.All(servers.Locations("/h", "linux", func(string) string { return "" }))
	for i, c := range list {
		for _, data := range originals(c) {
			f.Add([]byte(data), i)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, i int) {
		c := list[uint(i)%uint(len(list))]
		e, err := c.Add(data, local)
		if err != nil {
			return
		}
		if s, found, err := c.Entry(e.Data); err != nil || !found || s.Command != local.Command {
			t.Fatalf("%s: added as %+v, %v, %v\n%q\n%q", c.ID, s, found, err, data, e.Data)
		}
		r, err := c.Remove(e.Data, data)
		if err != nil {
			return
		}
		if _, found, err := c.Entry(r.Data); err != nil || found {
			t.Fatalf("%s: removed: found %v, %v\n%q", c.ID, found, err, r.Data)
		}
	})
}
