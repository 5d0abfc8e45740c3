package workspace

import (
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/invisible"
)

// Definer is a kind of files that control what programs do.
type Definer struct {
	Runners []string // the programs that read them
	Files   []string // their names, or patterns of [path.Match]
}

// Definers are the kinds that yaya knows. Nobody changes them.
var Definers = []Definer{
	{[]string{"make", "gmake", "bmake"}, []string{"GNUmakefile", "makefile", "Makefile", "BSDmakefile", "*.mk"}},
	{[]string{"npm", "npx", "yarn", "pnpm", "bun"}, []string{"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml"}},
	{[]string{"pytest", "py.test", "python", "python3", "tox", "nox", "pip", "uv"}, []string{"pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "pytest.ini", "conftest.py"}},
	{[]string{"go"}, []string{"go.mod", "go.work"}},
	{[]string{"cargo"}, []string{"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"}},
	{[]string{"just"}, []string{"justfile", "Justfile", ".justfile"}},
	{[]string{"task"}, []string{"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"}},
	{[]string{"rake", "bundle"}, []string{"Rakefile", "Gemfile"}},
	{[]string{"gradle", "gradlew"}, []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}},
	{[]string{"mvn", "mvnw"}, []string{"pom.xml"}},
	{[]string{"cmake", "ctest"}, []string{"CMakeLists.txt"}},
}

// instructing are files that instruct agents, that run at a commit or push, or in continuous integration.
var instructing = []string{
	"AGENTS.md", "CLAUDE.md", "GEMINI.md", "*mcp.json", "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd",
	"applypatch-msg", "commit-msg", "post-applypatch", "post-checkout", "post-commit", "post-merge", "post-rewrite",
	"pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "prepare-commit-msg",
	"lefthook.yml", "lefthook.yaml", "Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml",
}

// Configures reports whether a file of a workspace controls what tools, agents or programs do: by a part of
// its cleaned path that begins with a dot, or by its name, whatever its case is. It is true, too, for names
// that a file system may take for another one.
func Configures(p string) bool {
	for part := range strings.SplitSeq(path.Clean(p), "/") {
		if strings.HasPrefix(part, ".") || strings.ContainsFunc(part, invisible.Is) {
			return true
		}
		if runtime.GOOS == "windows" && (strings.ContainsAny(part, `~:\`) || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ")) {
			return true
		}
	}
	name := path.Base(p)
	if slices.ContainsFunc(instructing, func(pattern string) bool { return isNamed(name, pattern) }) {
		return true
	}
	return slices.ContainsFunc(Definers, func(d Definer) bool {
		return slices.ContainsFunc(d.Files, func(pattern string) bool { return isNamed(name, pattern) }) // one with a folder begins with a dot
	})
}

// isNamed reports whether a pattern, which is a name or a * and the end of names, matches a name of any case.
func isNamed(name, pattern string) bool {
	end, open := strings.CutPrefix(pattern, "*")
	if open {
		for i := range name { // a letter of another case may have another length
			if strings.EqualFold(name[i:], end) {
				return true
			}
		}
	}
	return strings.EqualFold(name, end)
}
