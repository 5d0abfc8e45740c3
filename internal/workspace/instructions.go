package workspace

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Bounds of the instructions of one folder, with what they import.
const (
	maxImports     = 16
	maxTried       = 64 // words that may be imports
	maxImportDepth = 4
)

// instructionFiles are the names of files that instruct agents. The first one that is there
// counts.
var instructionFiles = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}

// Instructions are those of one folder for agents.
type Instructions struct {
	Path string // of the file
	Text string // with what the file imports
	More bool   // the text was cut
}

// Instructions returns the instructions of a folder, of up to most bytes, and whether there are
// any: AGENTS.md, or where that is missing, CLAUDE.md or GEMINI.md. A folder below the workspace
// has none if .gitignore leaves it or its file out: what was downloaded instructs nobody.
//
// "@path" imports a file of the workspace, which follows the text; a word that names no file is
// just a word.
func (w *Workspace) Instructions(dir string, most int) (Instructions, bool) {
	dir, err := w.Clean(dir)
	if err != nil {
		return Instructions{}, false
	}
	for _, name := range instructionFiles {
		p := path.Join(dir, name)
		if _, err := w.root.Lstat(p); err != nil {
			continue
		}
		if dir != "." && !w.listed(p) {
			return Instructions{}, false
		}
		text, err := w.Text(p)
		if err != nil {
			continue
		}
		in := &importer{w: w, left: most, seen: []string{p}}
		var b strings.Builder
		text = in.take(text)
		b.WriteString(text)
		in.follow(&b, p, text, 0)
		return Instructions{Path: p, Text: b.String(), More: in.more}, true
	}
	return Instructions{}, false
}

// imported returns the paths that files of a folder which instruct agents, and what these import, name as
// imports. All files count: other agents read others than yaya.
func (w *Workspace) imported(dir string) (out []string) {
	for _, name := range append([]string{"CLAUDE.local.md"}, instructionFiles...) {
		p := path.Join(dir, name)
		text, err := w.Text(p)
		if err != nil {
			continue
		}
		in := &importer{w: w, left: MaxFile, seen: []string{p}}
		in.follow(new(strings.Builder), p, in.take(text), 0)
		out = append(out, in.named...)
	}
	return out
}

// importer gathers imports within its bounds.
type importer struct {
	w     *Workspace
	left  int
	seen  []string
	named []string // as imports: there need not be such files
	tried int
	more  bool
}

// take cuts a text to what is left.
func (in *importer) take(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > in.left {
		text, in.more = strings.ToValidUTF8(text[:in.left], ""), true
	}
	in.left -= len(text)
	return text
}

func (in *importer) follow(b *strings.Builder, from, text string, depth int) {
	for _, name := range imports(text) {
		p, err := in.w.Clean(path.Join(path.Dir(from), name))
		if filepath.IsAbs(name) || path.IsAbs(name) || err != nil || slices.Contains(in.seen, p) {
			continue
		}
		if in.tried++; in.tried > maxTried {
			in.more = true
			return
		}
		in.named = append(in.named, p)
		imported, err := in.w.Text(p)
		if err != nil {
			continue
		}
		if depth == maxImportDepth || len(in.seen) > maxImports || in.left == 0 {
			in.more = true
			return
		}
		in.seen = append(in.seen, p)
		imported = in.take(imported)
		b.WriteString("\n\n## " + Shown(p) + "\n" + imported)
		in.follow(b, p, imported, depth+1)
	}
}

// imports returns the paths of a text's imports: words that begin with @, outside code.
func imports(text string) (out []string) {
	fenced := false
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 {
				continue // code
			}
			for _, word := range strings.Fields(part) {
				if name, ok := strings.CutPrefix(word, "@"); ok && name != "" {
					out = append(out, strings.TrimRight(name, ".,;:!?)"))
				}
			}
		}
	}
	return out
}

// listed reports whether Walk would visit a file.
func (w *Workspace) listed(p string) bool {
	patterns := w.ignored(".")
	parts := strings.Split(p, "/")
	for i, name := range parts {
		at, dir := path.Join(parts[:i+1]...), i < len(parts)-1
		if isGit(name) || (dir && w.isRepository(at)) || gitignore.NewMatcher(patterns).Match(parts[:i+1], dir) {
			return false
		}
		if dir {
			patterns = append(patterns, w.ignored(at)...)
		}
	}
	return true
}
