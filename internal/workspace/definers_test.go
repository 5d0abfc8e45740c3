package workspace

import "testing"

// S-50: files that control what tools, agents and programs do are known by any spelling of their names.
func TestConfigures(t *testing.T) {
	for name, want := range map[string]bool{
		"a.txt": false, "src/main.go": false, "makefile.go": false, "docs/pre-commit.md": false, "agents/x.md": false,
		"AGENTS.md": true, "sub/Agents.MD": true, "AGENT\u017f.md": true, "GEMINI.md": true, "CLAUDE.local.md": true, "AGENTS.override.md": true, ".github/x.yml": true, "a/.x/b": true,
		"Makefile": true, "sub/GNUmakefile": true, "rules.mk": true, "RULES.M\u212a": true, "package.json": true, "pac\u200ckage.json": true,
		"conftest.py": true, "pyproject.toml": true, "Cargo.toml": true, "build.rs": true, "justfile": true, "go.mod": true, "CMakeLists.txt": true,
		"x/.cargo/config.toml": true, "config.toml": false, "my.mcp.json": true, "mcp.json": true, "githooks/pre-commit": true, "lefthook.yml": true, "./gradlew": true,
		"githooks/reference-transaction": true, "githooks/post-index-change": true, "githooks/fsmonitor-watchman": true, "githooks/Pre-Receive": true,
		"lefthook-local.yml": true, "lefthook.toml": true, "x/HEAD": true, "composer.json": true, "deno.jsonc": true, "package.yaml": true, "rust-toolchain.toml": true, "gradle/wrapper/gradle-wrapper.properties": true, "my.code-workspace": true,
		"Make\ufb01le": true, "conf\ufb06est.py": true, "con\ufb05st.md": true, "straße.txt": false, "headers.h": false,
	} {
		if got := Configures(name); got != want {
			t.Errorf("Configures(%q) = %v, want %v", name, got, want)
		}
	}
}
