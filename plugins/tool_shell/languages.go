package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// language is a language server that yaya knows: what starts it and which files it is for.
type language struct {
	commands [][]string        // the first one that is installed is taken
	files    map[string]string // the protocol's language by extension
	options  any               // its own
}

var languages = []language{
	{commands: [][]string{{"gopls"}}, files: map[string]string{".go": "go"}},
	{
		commands: [][]string{{"typescript-language-server", "--stdio"}},
		files: map[string]string{
			".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
			".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
		},
		// It would fetch types that nobody has installed.
		options: map[string]any{"disableAutomaticTypingAcquisition": true},
	},
	{commands: [][]string{{"basedpyright-langserver", "--stdio"}, {"pyright-langserver", "--stdio"}, {"pylsp"}}, files: map[string]string{".py": "python", ".pyi": "python"}},
	{commands: [][]string{{"rust-analyzer"}}, files: map[string]string{".rs": "rust"}},
	{
		commands: [][]string{{"clangd"}},
		files:    map[string]string{".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp"},
	},
	{commands: [][]string{{"zls"}}, files: map[string]string{".zig": "zig"}},
	{commands: [][]string{{"lua-language-server"}}, files: map[string]string{".lua": "lua"}},
	{commands: [][]string{{"bash-language-server", "start"}}, files: map[string]string{".sh": "shellscript", ".bash": "shellscript"}},
}

// languageOf returns the language server for a file.
func languageOf(file string) (l *language, id string) {
	ext := strings.ToLower(path.Ext(file))
	for i := range languages {
		if id := languages[i].files[ext]; id != "" {
			return &languages[i], id
		}
	}
	return nil, ""
}

// installed returns the command of a language server with the path of its program, nil if there is
// none on the PATH of commands outside the workspace, whose programs nobody has chosen.
func (l *language) installed(env []string, w *workspace.Workspace) []string {
	for _, c := range l.commands {
		at, err := proc.LookPath(c[0], env)
		if err != nil || !filepath.IsAbs(at) {
			continue
		}
		if real, err := filepath.EvalSymlinks(at); err != nil || inside(w.Dir(), at) || inside(canonical(w.Dir()), real) {
			continue
		}
		return append([]string{at}, c[1:]...)
	}
	return nil
}

// names words what could be installed: one program, or one of several.
func (l *language) names() string {
	var out []string
	for _, c := range l.commands {
		out = append(out, c[0])
	}
	if len(out) == 1 {
		return out[0]
	}
	return "one of " + strings.Join(out, ", ")
}

// inside reports whether a path is in a folder.
func inside(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}
