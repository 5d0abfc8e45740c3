package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/clients"
)

// A client's file that somebody changes between the question and the answer stays as
// it is; a backup never replaces another.
func TestClientFilesAreNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	write := func(data string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(data), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("{}")
	f := clientFile{Client: clients.Client{Name: "Cursor"}, path: path, data: []byte("{}"), found: true}
	write(`{"theirs":1}`)
	if _, err := changeFile(t.Context(), f, clients.Edit{Data: []byte(`{"ours":1}`)}); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a file that was changed: got %v, want it refused", err)
	}
	f.found = false
	if _, err := changeFile(t.Context(), f, clients.Edit{Data: []byte(`{"ours":1}`)}); err == nil {
		t.Error("a file that was not there before was replaced")
	}
	f.found = true
	var made []string
	for _, data := range []string{"{}", `{"a":1}`} {
		write(data)
		f.data = []byte(data)
		backup, err := changeFile(t.Context(), f, clients.Edit{Data: []byte(`{"ours":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, backup)
	}
	for i, want := range []string{"{}", `{"a":1}`} {
		if got, err := os.ReadFile(made[i]); err != nil || string(got) != want {
			t.Errorf("backup %d: got %q, %v, want %q", i, got, err, want)
		}
	}
	if all, err := backups(path); err != nil || !slices.Equal(all, made) {
		t.Errorf("the backups: got %q, %v, want %q", all, err, made)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("permissions: got %v, %v, want 0640", st, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left behind: %v, %v, want the file and two backups", left, err)
	}
}

// An entry is shown as if it stood by itself, wherever in a file it was.
func TestOutdented(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"JSON":             {"\"yaya\": {\r\n      \"args\": [\r\n        \"x\"\r\n      ]\r\n    }", "\"yaya\": {|  \"args\": [|    \"x\"|  ]|}"},
		"JSON on one line": {`"yaya": {"a": 1}`, `"yaya": {"a": 1}`},
		"TOML":             {"[mcp.yaya]\na = 1\n", "[mcp.yaya]|a = 1"},
		"YAML":             {"  yaya:\n    a: 1\n", "yaya:|  a: 1"},
		"YAML, a list":     {"- name: yaya\n  a: 1\n", "- name: yaya|  a: 1"},
		"none":             {"", ""},
	} {
		if got := strings.Join(outdented(c.in), "|"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
