package masked

import "testing"

// Secrets shorter than six characters, and other short ordinary words, do not hide
// words in the output of uv and npm while they install a server.
func TestInstallersAreReadable(t *testing.T) {
	var s Secrets
	words := []string{"uv", "npm", "pack", "tool", "error", "token", "key", "auth", "code", "https", "1", "401", "100", "abc12", "E404"}
	s.Learn(words...)
	s.Declare(words...)
	for _, text := range []string{
		"Resolved 31 packages in 1.2s\nPrepared 31 packages in 402ms\nInstalled 31 packages in 100ms\n + anyio==4.9.0\n + mcp-server-git==2026.1.14",
		"error: Failed to fetch: `https://packages.example/simple/mcp-server-git/`\n  Caused by: Request failed after 3 retries",
		"  × No solution found when resolving tool dependencies:\n  ╰─▶ Because mcp-server-gitt was not found in the package registry",
		"error: Failed to spawn: `mcp-server-git`\n  Caused by: No such file or directory (os error 2)",
		"npm error code E404\nnpm error 404 Not Found - GET https://packages.example/@modelcontextprotocol%2fserver-nothing - Not found",
		"npm error code ENEEDAUTH\nnpm error need auth This command requires you to be logged in.\nnpm error need auth You need to authorize this machine using `npm adduser`",
		"npm notice Access token expired or revoked. Please try logging in again.",
		"npm warn deprecated node-domexception@1.0.0: Use your platform's native DOMException instead",
		"npm warn EBADENGINE Unsupported engine { package: 'x@1.0.0', required: { node: '>=24' }, current: { node: 'v20.20.2' } }",
		"npm error A complete log of this run can be found in: /home/you/.npm/_logs/2026-01-01T00_00_00_000Z-debug-0.log",
		"added 100 packages in 4s, 1 key package is looking for funding",
	} {
		if got := s.String(text); got != text {
			t.Errorf("got %q, want %q as it is", got, text)
		}
		if got := string(s.Conceal([]byte(text))); got != text {
			t.Errorf("Conceal: got %q, want %q as it is", got, text)
		}
	}
}
