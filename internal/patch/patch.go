// Package patch reads patches as models write them and applies them to texts: the
// unified format of diff and git, and the format that begins with "*** Begin Patch".
//
// Line numbers are hints: a hunk goes where its lines are, nearest to where it says.
// Where its lines are not found as they are, differences in white space at the ends of
// lines, and then anywhere in them, are forgiven; where they are found nowhere, or the
// tolerance makes the place ambiguous, the patch fails and names the hunk.
package patch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Limits of a patch.
const (
	MaxSize  = 1 << 20 // bytes
	maxFiles = 200
	maxHunks = 2000
)

// Op is an operation on a file.
type Op string

// The operations.
const (
	Create Op = "create"
	Change Op = "change"
	Delete Op = "delete"
)

// File is the change of one file.
type File struct {
	Op   Op
	Path string
	// To is the new path of a file that is moved, else "".
	To    string
	Hunks []Hunk
}

// Hunk is a run of lines that changes. A line begins with ' ', '-' or '+'.
type Hunk struct {
	At    int    // line where it should be, from 1
	Known bool   // At counts, also as 0: before the first line
	After string // a line that comes somewhere before it, "" is not known
	Lines []string
	// Marked reports that the hunk specifies how the text ends; NoNewline that the new
	// one ends without a line break.
	Marked, NoNewline bool
	// AtEnd reports that the hunk is at the end of the file.
	AtEnd bool
}

// ErrFormat reports that a text is not a patch.
var ErrFormat = errors.New("this is not a patch")

func bad(line int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrFormat, line+1, fmt.Sprintf(format, args...))
}

// Parse reads a patch.
func Parse(text string) ([]File, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrFormat, MaxSize)
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var files []File
	var err error
	if i := indexPrefix(lines, "*** Begin Patch"); i >= 0 {
		files, err = parseEnvelope(lines, i+1)
	} else {
		files, err = parseUnified(lines)
	}
	if err != nil {
		return nil, err
	}
	hunks := 0
	seen := map[string]bool{}
	for _, f := range files {
		hunks += len(f.Hunks)
		for _, p := range []string{f.Path, f.To} {
			if p != "" && seen[p] {
				return nil, fmt.Errorf("%w: %s is in it twice", ErrFormat, p)
			}
			seen[p] = true
		}
		if f.Op == Change && len(f.Hunks) == 0 && f.To == "" {
			return nil, fmt.Errorf("%w: nothing changes in %s", ErrFormat, f.Path)
		}
	}
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("%w: it names no file; begin with --- a/file and +++ b/file, or with *** Begin Patch", ErrFormat)
	case len(files) > maxFiles || hunks > maxHunks:
		return nil, fmt.Errorf("%w: more than %d files or %d hunks", ErrFormat, maxFiles, maxHunks)
	}
	return files, nil
}

func indexPrefix(lines []string, prefix string) int {
	for i, l := range lines {
		if strings.HasPrefix(l, prefix) {
			return i
		}
	}
	return -1
}

// parseEnvelope reads the format of "*** Begin Patch".
func parseEnvelope(lines []string, i int) ([]File, error) {
	var out []File
	var f *File
	for ; i < len(lines); i++ {
		l := lines[i]
		name := func(prefix string) string { return strings.TrimSpace(strings.TrimPrefix(l, prefix)) }
		switch {
		case strings.HasPrefix(l, "*** End Patch"):
			return out, nil
		case strings.HasPrefix(l, "*** Add File: "):
			out = append(out, File{Op: Create, Path: name("*** Add File: "), Hunks: []Hunk{{}}})
			f = &out[len(out)-1]
		case strings.HasPrefix(l, "*** Delete File: "):
			out = append(out, File{Op: Delete, Path: name("*** Delete File: ")})
			f = nil
		case strings.HasPrefix(l, "*** Update File: "):
			out = append(out, File{Op: Change, Path: name("*** Update File: ")})
			f = &out[len(out)-1]
		case strings.HasPrefix(l, "*** Move to: ") && f != nil && f.Op == Change && len(f.Hunks) == 0:
			f.To = name("*** Move to: ")
		case strings.HasPrefix(l, "*** End of File") && f != nil && len(f.Hunks) > 0:
			f.Hunks[len(f.Hunks)-1].AtEnd = true
		case f == nil:
			if strings.TrimSpace(l) != "" {
				return nil, bad(i, "%.60q stands outside a file", l)
			}
		case strings.HasPrefix(l, "@@") && f.Op == Change:
			f.Hunks = append(f.Hunks, Hunk{After: strings.TrimSpace(strings.Trim(l, "@"))})
		case f.Op == Create && !strings.HasPrefix(l, "+"):
			return nil, bad(i, "the lines of a new file begin with +")
		default:
			if len(f.Hunks) == 0 {
				f.Hunks = append(f.Hunks, Hunk{})
			}
			line, err := hunkLine(l, i)
			if err != nil {
				return nil, err
			}
			h := &f.Hunks[len(f.Hunks)-1]
			h.Lines = append(h.Lines, line)
		}
	}
	return nil, fmt.Errorf("%w: *** End Patch is missing", ErrFormat)
}

// hunkLine checks a line of a hunk; an empty one is an empty line of context, which
// models like to write without its blank.
func hunkLine(l string, i int) (string, error) {
	if l == "" {
		return " ", nil
	}
	if !strings.ContainsRune(" +-", rune(l[0])) {
		return "", bad(i, "the lines of a hunk begin with a blank, + or -: %.60q", l)
	}
	return l, nil
}

// parseUnified reads the format of diff -u and git diff.
func parseUnified(lines []string) ([]File, error) {
	var out []File
	var moved [2]string
	for i := 0; i < len(lines); {
		l := lines[i]
		switch {
		case strings.HasPrefix(l, "rename from "):
			moved[0] = strings.TrimPrefix(l, "rename from ")
		case strings.HasPrefix(l, "rename to "):
			moved[1] = strings.TrimPrefix(l, "rename to ")
			if next := i + 1; next >= len(lines) || !headers(lines, next) {
				out = append(out, File{Op: Change, Path: moved[0], To: moved[1]})
				moved = [2]string{}
			}
		case strings.HasPrefix(l, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			f, err := unifiedFile(fileName(l[4:]), fileName(lines[i+1][4:]), moved)
			if err != nil {
				return nil, bad(i, "%v", err)
			}
			moved = [2]string{}
			if f.Hunks, i, err = unifiedHunks(lines, i+2); err != nil {
				return nil, err
			}
			out = append(out, f)
			continue
		case strings.HasPrefix(l, "GIT binary patch") || strings.HasPrefix(l, "Binary files "):
			return nil, bad(i, "binary files cannot be patched")
		case strings.HasPrefix(l, "@@ "):
			return nil, bad(i, "a hunk without a file before it (--- and +++)")
		}
		i++
	}
	return out, nil
}

// headers tells whether --- comes before the next file.
func headers(lines []string, i int) bool {
	for ; i < len(lines) && !strings.HasPrefix(lines[i], "diff "); i++ {
		if strings.HasPrefix(lines[i], "--- ") {
			return true
		}
	}
	return false
}

func unifiedFile(from, to string, moved [2]string) (File, error) {
	switch {
	case from == "/dev/null" && to == "/dev/null":
		return File{}, errors.New("neither file has a name")
	case from == "/dev/null":
		return File{Op: Create, Path: to}, nil
	case to == "/dev/null":
		return File{Op: Delete, Path: from}, nil
	case moved[1] != "":
		return File{Op: Change, Path: moved[0], To: moved[1]}, nil
	case from != to:
		return File{Op: Change, Path: from, To: to}, nil
	}
	return File{Op: Change, Path: from}, nil
}

// fileName takes the name out of a header: without its time, and without the a/ and
// b/ that git puts before it.
func fileName(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	s = strings.TrimSpace(s)
	if s == "/dev/null" {
		return s
	}
	s = strings.Trim(s, `"`)
	for _, p := range []string{"a/", "b/"} {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return rest
		}
	}
	return s
}

var hunkHeader = lazyregexp.New(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// numbers reads a hunk's header; counts are -1 where there are none.
func numbers(l string) (at, olds, news int) {
	m := hunkHeader().FindStringSubmatch(l)
	if m == nil {
		_, _ = fmt.Sscanf(l, "@@ -%d", &at) // without a number it is looked for everywhere
		return at, -1, -1
	}
	count := func(s string) int {
		if s == "" {
			return 1
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			return -1
		}
		return n
	}
	at, _ = strconv.Atoi(m[1]) // digits; too many are not a line number
	return at, count(m[2]), count(m[4])
}

// counted takes as many lines as a hunk's header says, if that is a hunk: then a line
// that looks like a header is one of its own. Models count badly, so it may not be.
func counted(lines []string, i, olds, news int) (h Hunk, next int, ok bool) {
	if olds < 0 || news < 0 {
		return h, i, false
	}
	for i < len(lines) && (olds > 0 || news > 0 || strings.HasPrefix(lines[i], `\`)) {
		l := lines[i]
		switch {
		case strings.HasPrefix(l, `\`):
			h.unterminated()
		case l == "" || l[0] == ' ':
			olds, news = olds-1, news-1
			h.Lines = append(h.Lines, " "+strings.TrimPrefix(l, " "))
		case l[0] == '-':
			olds--
			h.Lines = append(h.Lines, l)
		case l[0] == '+':
			news--
			h.Lines = append(h.Lines, l)
		default:
			return h, i, false
		}
		i++
	}
	if olds != 0 || news != 0 {
		return h, i, false
	}
	return h, i, i == len(lines) || !strings.ContainsAny(lines[i][:min(1, len(lines[i]))], "+- ") || strings.HasPrefix(lines[i], "--- ")
}

// unterminated records that the line before it has no line break.
func (h *Hunk) unterminated() {
	n := len(h.Lines)
	if n == 0 {
		return
	}
	h.Marked = true
	if h.Lines[n-1][0] != '-' { // behind a line that goes, it says how the old text ended
		h.NoNewline = true
	}
}

func unifiedHunks(lines []string, i int) ([]Hunk, int, error) {
	var out []Hunk
	for i < len(lines) {
		l := lines[i]
		switch {
		case strings.HasPrefix(l, "@@"):
			at, olds, news := numbers(l)
			if h, next, ok := counted(lines, i+1, olds, news); ok {
				h.At, h.Known = at, true
				out, i = append(out, h), next
				continue
			}
			out = append(out, Hunk{At: at})
		case strings.HasPrefix(l, `\ No newline`):
			if len(out) > 0 {
				out[len(out)-1].unterminated()
			}
		case strings.HasPrefix(l, "diff ") || (strings.HasPrefix(l, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ")):
			return out, i, nil
		case len(out) == 0:
			if strings.TrimSpace(l) != "" {
				return nil, 0, bad(i, "a hunk begins with @@: %.60q", l)
			}
		case l == "" && !within(lines, i):
			return out, i + 1, nil
		case strings.HasPrefix(l, "```"): // a fence around the patch
			return out, i + 1, nil
		default:
			line, err := hunkLine(l, i)
			if err != nil {
				return nil, 0, err
			}
			h := &out[len(out)-1]
			h.Lines = append(h.Lines, line)
		}
		i++
	}
	return out, i, nil
}

// within reports whether an empty line belongs to a hunk: more of its lines follow.
func within(lines []string, i int) bool {
	for i++; i < len(lines); i++ {
		if lines[i] == "" {
			continue
		}
		return strings.ContainsRune(" +-@\\", rune(lines[i][0])) && !strings.HasPrefix(lines[i], "--- ")
	}
	return false
}
