package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret among the arguments of a server stands in yaya's own configuration and in no
// output: of import, list, get, doctor, the API and the audit; and neither does one that
// a server says as it fails.
func TestSecretsInArgsAreShownNowhere(t *testing.T) {
	b := newBox(t)
	file := filepath.Join(b.dir, "other.json")
	const said = `echo "cannot sign in with $SERVICE_KEY and $0 $1 $2" >&2; exit 3`
	raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"fails": map[string]any{"command": "/bin/sh", "args": []string{"-c", said, "sh", "--token", "canary-argument-1"}, "env": map[string]string{"SERVICE_KEY": "canary-variable-2"}},
		"gone":  map[string]any{"command": "/nonexistent/x", "args": []string{"--verbose", "--db=postgres://me:canary-url-3@db/x", "ghp_canary4canary4canary4canary4"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	hidden := func(where, text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not show %q: %s", where, w, text)
			}
		}
		if strings.Contains(text, "canary") {
			t.Errorf("%s shows a secret: %s", where, text)
		}
	}
	b.serve()
	hidden("import", b.must("mcp", "import", "--yes", file), "--token '****'", "--verbose '--db=postgres://me:****@db/x' '****'")
	b.waitState("fails", "failed")
	for _, name := range []string{"fails", "gone"} {
		hidden("get", b.must("mcp", "get", name), "****")
		hidden("get --json", b.must("mcp", "get", name, "--json"), "****")
	}
	list, _ := b.run("mcp", "list") // fails, since servers do
	hidden("list", list, "cannot sign in with **** and sh --token ****")
	list, err = b.run("mcp", "list", "--json")
	if err != nil {
		t.Fatalf("yaya mcp list --json = %v, %s; want no error", err, list)
	}
	hidden("list --json", list)
	doctor, _ := b.run("doctor") // fails, since servers do
	hidden("doctor", doctor, "cannot sign in")
	hidden("logs", b.must("mcp", "logs", "fails"), "cannot sign in")
	for _, path := range []string{"/api/mcp/servers", "/status", "/api/doctor"} {
		code, body, _ := b.raw(http.MethodGet, path, "")
		if code != http.StatusOK {
			t.Errorf("%s: got %d %s, want code %d", path, code, body, http.StatusOK)
		}
		hidden(path, string(body))
	}
	// Nothing is left of them beside the configuration.
	err = filepath.WalkDir(filepath.Join(b.dir, "d"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s has a secret", path)
		}
		return err
	})
	if err != nil {
		t.Errorf("WalkDir of the data folder = %v, want no error", err)
	}
	hidden("audit", b.must("audit"), "server_changed")
	own, err := os.ReadFile(filepath.Join(b.dir, "c", "mcp.json"))
	if err != nil || !bytes.Contains(own, []byte("canary-argument-1")) {
		t.Errorf("the configuration is %s, %v, want the secret in it", own, err)
	}
}
