package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// yaya never becomes its own server, however its address or its program is written. A
// yaya elsewhere is a server like any other.
func TestAddRefusesYayaItself(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	_, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(b.dir, "gateway")
	if err := os.Symlink(b.bin, link); err != nil {
		t.Fatal(err)
	}
	const address, program = "its address is that of yaya itself", "it is yaya itself"
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"its address", []string{"add", "s", "http://127.0.0.1:" + port + "/mcp"}, address},
		{"by name", []string{"add", "s", "http://LOCALHOST:" + port + "/mcp/"}, address},
		{"by IPv6", []string{"add", "s", "http://[::1]:" + port + "/mcp"}, address},
		{"a profile", []string{"add", "s", "http://127.0.0.1:" + port + "/mcp/search?x=1"}, address},
		{"its program", []string{"add", "s", b.bin, "mcp", "serve"}, program},
		{"its program by another name", []string{"add", "s", link, "mcp", "serve", "--profile", "search"}, program},
		{"one named yaya", []string{"add", "s", "/opt/bin/yaya", "mcp", "serve"}, program},
		{"its own data", []string{"add", "s", b.bin, "--data-dir", filepath.Join(b.dir, "d"), "mcp", "serve"}, program},
		{"in a shell", []string{"add", "s", "sh", "-c", "exec yaya mcp serve"}, program},
		{"as JSON", []string{"add-json", "s", `{"url":"http://127.0.0.1:` + port + `/mcp"}`}, address},
		{"its program as JSON", []string{"add-json", "s", `{"command":"yaya","args":["mcp","serve"]}`}, program},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := b.run(append([]string{"mcp"}, c.args...)...)
			if exitCode(err) != 2 || !strings.Contains(out, c.want) {
				t.Errorf("yaya mcp %q: got %v, %s; want exit code 2 and %q", c.args, err, out, c.want)
			}
		})
	}
	for name, args := range map[string][]string{
		"another port":    {"http://127.0.0.1:1/mcp"},
		"another host":    {"http://yaya.example:" + port + "/mcp"},
		"another path":    {"http://127.0.0.1:" + port + "/other/mcp"},
		"other data":      {b.bin, "--data-dir", filepath.Join(b.dir, "other"), "mcp", "serve"},
		"another command": {b.bin, "version"},
	} {
		id := strings.ReplaceAll(name, " ", "-")
		if out, err := b.run(append([]string{"mcp", "add", id}, args...)...); err != nil {
			t.Errorf("%s: got %v, %s; want that it is added", name, err, out)
		}
		b.must("mcp", "remove", id)
	}

	b.edit("mcp.json", fmt.Sprintf(`{"mcpServers":{"hand":{"url":"http://localhost:%s/mcp"},"variable":{"url":"http://${NOBODY:-127.0.0.1}:%[1]s/mcp"},"run":{"command":%q,"args":["mcp","serve"]}}}`, port, b.bin))
	b.must("reload")
	for name, want := range map[string]string{"hand": address, "variable": address, "run": program} {
		var got admin.Server
		eventually.True(t, name+" is known", func() bool {
			var all []admin.Server
			b.admin("GET", "/mcp/servers", "", 200, &all)
			for _, s := range all {
				if s.Name == name {
					got = s
				}
			}
			return got.State != ""
		})
		if got.State != "invalid" || !strings.Contains(got.Reason, want) {
			t.Errorf("%s: got %q, %q; want it invalid: %s", name, got.State, got.Reason, want)
		}
	}
}
