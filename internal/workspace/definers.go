package workspace

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
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
	{[]string{"npm", "npx", "yarn", "pnpm", "bun"}, []string{"package.json", "package.json5", "package.yaml", ".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml"}},
	{[]string{"pytest", "py.test", "python", "python3", "tox", "nox", "pip", "uv"}, []string{"pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "pytest.ini", "conftest.py"}},
	{[]string{"go"}, []string{"go.mod", "go.work"}},
	{[]string{"cargo"}, []string{"Cargo.toml", "build.rs", "rust-toolchain", "rust-toolchain.toml", ".cargo/config.toml", ".cargo/config"}},
	{[]string{"composer"}, []string{"composer.json"}},
	{[]string{"deno"}, []string{"deno.json", "deno.jsonc"}},
	{[]string{"just"}, []string{"justfile", "Justfile", ".justfile"}},
	{[]string{"task"}, []string{"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"}},
	{[]string{"rake", "bundle"}, []string{"Rakefile", "Gemfile"}},
	{[]string{"gradle", "gradlew"}, []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}},
	{[]string{"mvn", "mvnw"}, []string{"pom.xml"}},
	{[]string{"cmake", "ctest"}, []string{"CMakeLists.txt"}},
}

// instructing are files that instruct agents, that have the tasks of an editor, that Git runs or that make
// a folder a repository of its own, with a configuration that names programs, or of continuous integration.
var instructing = []string{
	"AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "*mcp.json", "*.code-workspace", "gradlew", "gradlew.bat", "gradle-wrapper.properties", "mvnw", "mvnw.cmd", "HEAD",
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change",
	"post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
	"pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction",
	"sendemail-validate", "update",
	"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml", "lefthook-local.json", "Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml",
}

// Configures reports whether a file of a workspace controls what tools, agents or programs do: by a part of
// its cleaned path that begins with a dot, or by its name, whatever its case is. It is true, too, for names
// that a file system may take for another one.
func Configures(p string) bool {
	for part := range strings.SplitSeq(path.Clean(p), "/") {
		if strings.HasPrefix(part, ".") || strings.ContainsFunc(part, hides) {
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

// Controls is [Configures], and true, too, for a file that instructions of the folders above it import, by
// whatever path, or if a link of such a name leads to it or to a folder above it: one in these folders, among
// Git's hooks, or in a folder of the workspace whose name begins with a dot. p is as from [Workspace.Clean].
func (w *Workspace) Controls(p string) bool {
	if Configures(p) {
		return true
	}
	dirs := []string{".git/hooks"}
	top, _ := fs.ReadDir(w.FS(), ".") // what cannot be read is not used either
	for _, e := range top {
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && !isGit(e.Name()) {
			dirs = append(dirs, e.Name())
		}
	}
	var led []fs.FileInfo // where links may lead: the file and the folders above it
	if info, err := w.root.Lstat(p); err == nil {
		led = append(led, info)
	}
	file := led[:len(led):len(led)] // no import brings in a folder
	for at := path.Dir(p); ; at = path.Dir(at) {
		if slices.ContainsFunc(w.imported(at), func(name string) bool { return strings.EqualFold(name, p) || w.leads(name, file) }) {
			return true
		}
		dirs = append(dirs, at)
		if at == "." {
			break
		}
		if info, err := w.root.Lstat(at); err == nil {
			led = append(led, info)
		}
	}
	for _, dir := range dirs {
		entries, _ := fs.ReadDir(w.FS(), dir)
		for _, e := range entries {
			link := path.Join(dir, e.Name())
			if e.Type()&fs.ModeSymlink != 0 && Configures(link) && w.leads(link, led) {
				return true
			}
		}
	}
	return false
}

// leads reports whether a path leads to one of some files and folders.
func (w *Workspace) leads(p string, to []fs.FileInfo) bool {
	// Not by the root: it follows no absolute link, and others do.
	at, err := os.Stat(filepath.Join(w.dir, filepath.FromSlash(p)))
	return err == nil && slices.ContainsFunc(to, func(info fs.FileInfo) bool { return os.SameFile(at, info) })
}

// hides reports whether a name with this character may be another name: file systems leave out what nobody
// sees, and those that ignore case take the ligatures of ff, fi, fl and st for the letters.
func hides(r rune) bool { return invisible.Is(r) || r >= '\ufb00' && r <= '\ufb06' }

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
