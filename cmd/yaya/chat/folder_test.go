package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// SEC-3: the question about a folder is worded, and no name in it makes lines of its own.
func TestFolderQuestion(t *testing.T) {
	ask := Ask{Tool: trustTool, Input: json.RawMessage(`{"folder":"/p","items":[{"kind":"check","runs":"make test\n  check: harmless"},{"kind":"server","name":"db","runs":"npx -y db && true"}],"added":[{"kind":"server","name":"db","runs":"npx -y db && true"}]}`)}
	got, ok := FolderQuestion(ask)
	if !ok {
		t.Fatal("FolderQuestion = false, want the question")
	}
	for _, want := range []string{"/p\n", `check: make test\n  check: harmless`, "server db: npx -y db && true", "  + server db", "its content has changed"} {
		if !strings.Contains(got, want) {
			t.Errorf("the question %q lacks %q", got, want)
		}
	}
	for name, other := range map[string]Ask{"another tool": {Tool: "shell", Input: ask.Input}, "no folder": {Tool: trustTool, Input: json.RawMessage(`{}`)}, "not JSON": {Tool: trustTool, Input: json.RawMessage(`x`)}} {
		if _, ok := FolderQuestion(other); ok {
			t.Errorf("%s: FolderQuestion = true, want false", name)
		}
	}
}
