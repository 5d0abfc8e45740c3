package servers_test

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// FID-9: a command that downloads what it runs is told from one that is there.
func TestFetches(t *testing.T) {
	for _, tc := range []struct {
		name string
		argv []string
		want bool
	}{
		{"npx", []string{"npx", "-y", "x"}, true},
		{"an absolute path", []string{"/usr/local/bin/npx", "-y", "x"}, true},
		{"of Windows", []string{`C:\Program Files\nodejs\npx.cmd`, "-y", "x"}, true},
		{"in capitals", []string{"NPX.CMD"}, true},
		{"uvx.exe", []string{"uvx.exe", "mcp-server-time"}, true},
		{"bunx", []string{"bunx", "x"}, true},
		{"bun x", []string{"bun", "x", "y"}, true},
		{"bun run", []string{"bun", "run", "x.ts"}, false},
		{"npm exec", []string{"npm", "exec", "--", "x"}, true},
		{"npm start", []string{"npm", "start"}, false},
		{"pnpm dlx", []string{"pnpm", "dlx", "x"}, true},
		{"pnpm with a folder", []string{"pnpm", "-C", "/tmp", "dlx", "x"}, true},
		{"pnpm run", []string{"pnpm", "run", "dlx"}, false},
		{"yarn dlx", []string{"yarn", "dlx", "x"}, true},
		{"uv run", []string{"uv", "run", "server.py"}, true},
		{"uv run in a folder", []string{"uv", "--directory", "/srv/x", "run", "server.py"}, true},
		{"uv tool run", []string{"uv", "tool", "run", "x"}, true},
		{"uv pip", []string{"uv", "pip", "run"}, false},
		{"pipx run", []string{"pipx", "run", "x"}, true},
		{"docker run", []string{"docker", "run", "-i", "--rm", "image"}, true},
		{"docker elsewhere", []string{"docker", "--context", "far", "run", "image"}, true},
		{"docker exec", []string{"docker", "exec", "-i", "run", "x"}, false},
		{"podman run", []string{"podman", "run", "image"}, true},
		{"deno", []string{"deno", "run", "-A", "npm:x"}, true},
		{"dotnet", []string{"dotnet", "run", "--project", "x"}, true},
		{"a built dotnet program", []string{"dotnet", "/srv/X.dll"}, false},
		{"go run", []string{"go", "run", "example.com/x@latest"}, true},
		{"go test", []string{"go", "test", "./..."}, false},
		{"cargo run", []string{"cargo", "run", "--release"}, true},
		{"behind env", []string{"env", "-u", "FOO", "A=b", "npx", "x"}, true},
		{"behind env -S", []string{"env", "-S", "npx -y x"}, true},
		{"behind env, of another", []string{"/usr/bin/env", "node", "npx"}, false},
		{"behind cmd /c", []string{"cmd", "/c", "npx", "-y", "x"}, true},
		{"behind cmd.exe /d /s /c", []string{"cmd.exe", "/d", "/s", "/C", "npx -y x"}, true},
		{"behind sh -c", []string{"sh", "-c", "exec npx -y x"}, true},
		{"behind bash -lc", []string{"/bin/bash", "-lc", "cd /srv && FOO=1 exec uvx x"}, true},
		{"behind a shell and a pause", []string{"sh", "-c", "sleep 3; exec uv run x"}, true},
		{"a shell in a shell", []string{"sh", "-c", "exec env A=b npx x"}, true},
		{"a shell that only names it", []string{"sh", "-c", "echo npx"}, false},
		{"an argument of a script", []string{"sh", "-c", "exec node x.js", "npx"}, false},
		{"powershell", []string{"powershell.exe", "-NoProfile", "-Command", "npx -y x"}, true},
		{"node", []string{"node", "npx"}, false},
		{"nothing behind env", []string{"env", "A=b"}, false},
		{"env behind itself without end", []string{"env", "env", "env", "env", "env", "env", "env", "env", "env", "npx"}, false},
		{"no command", []string{""}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := servers.Server{Transport: servers.Stdio, Command: tc.argv[0], Args: tc.argv[1:]}
			if got := s.Fetches(); got != tc.want {
				t.Errorf("Fetches of %q = %v, want %v", strings.Join(tc.argv, " "), got, tc.want)
			}
		})
	}
	if (servers.Server{Transport: servers.HTTP, URL: "https://npx"}).Fetches() {
		t.Error("a remote server fetches")
	}
}
