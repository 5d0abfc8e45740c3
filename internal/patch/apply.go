package patch

import (
	"fmt"
	"strings"
)

// Apply applies the hunks of a file to its text and returns the new one.
func (f File) Apply(old string) (string, error) {
	if f.Op == Create {
		return f.content()
	}
	crlf := strings.Contains(old, "\r\n")
	lines, ended := split(strings.ReplaceAll(old, "\r\n", "\n"))
	at, moved := 0, 0
	for n, h := range f.Hunks {
		if h.At > 0 {
			h.At = max(h.At+moved, 1) // lines were added or taken away before it
		}
		i, olds, err := h.find(lines, at)
		if err != nil {
			return "", fmt.Errorf("%s: hunk %d: %w", f.Path, n+1, err)
		}
		var next []string
		k := i
		for _, l := range h.Lines {
			switch l[0] {
			case ' ':
				next = append(next, lines[k]) // as it is in the file
				k++
			case '-':
				k++
			case '+':
				next = append(next, l[1:])
			}
		}
		if i+olds == len(lines) {
			switch {
			case h.Marked:
				ended = !h.NoNewline
			case len(h.Lines) > 0 && h.Lines[len(h.Lines)-1][0] != ' ':
				ended = true
			}
		}
		lines = append(append(append([]string{}, lines[:i]...), next...), lines[i+olds:]...)
		at, moved = i+len(next), moved+len(next)-olds
	}
	return join(lines, ended, crlf), nil
}

func (f File) content() (string, error) {
	var lines []string
	ended := true
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if l[0] != '+' {
				return "", fmt.Errorf("%s: the lines of a new file begin with +", f.Path)
			}
			lines = append(lines, l[1:])
		}
		ended = ended && !h.NoNewline
	}
	return join(lines, ended, false), nil
}

func split(s string) (lines []string, ended bool) {
	if s == "" {
		return nil, true
	}
	ended = strings.HasSuffix(s, "\n")
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n"), ended
}

func join(lines []string, ended, crlf bool) string {
	if len(lines) == 0 {
		return ""
	}
	sep := "\n"
	if crlf {
		sep = "\r\n"
	}
	out := strings.Join(lines, sep)
	if ended {
		out += sep
	}
	return out
}

// looks are the comparisons of lines, from strict to lenient.
var looks = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimRight(s, " \t") },
	func(s string) string { return strings.Join(strings.Fields(s), " ") },
}

// find returns the place of a hunk, not before line from (counted from 0), and how
// many lines of the file it replaces.
func (h *Hunk) find(lines []string, from int) (at, n int, err error) {
	var olds []string
	for _, l := range h.Lines {
		if l[0] != '+' {
			olds = append(olds, l[1:])
		}
	}
	if h.After != "" {
		if i := indexLine(lines, h.After, from); i >= 0 {
			from = i + 1
		} else if len(olds) == 0 {
			return 0, 0, fmt.Errorf("there is no line %.80q", h.After)
		}
	}
	if len(olds) == 0 {
		return h.insertion(len(lines), from), 0, nil
	}
	if h.AtEnd && len(olds) <= len(lines) {
		if i := len(lines) - len(olds); i >= from && same(lines[i:], olds, looks[1]) {
			return i, len(olds), nil
		}
	}
	want := h.At - 1
	for level, look := range looks {
		best, count := -1, 0
		for i := from; i+len(olds) <= len(lines); i++ {
			if !same(lines[i:], olds, look) {
				continue
			}
			if count++; best < 0 || (want >= 0 && distance(i, want) < distance(best, want)) {
				best = i
			}
		}
		switch {
		case best < 0:
			continue
		case count > 1 && want < 0 && h.After == "":
			return 0, 0, fmt.Errorf("its lines occur %d times: add lines around them", count)
		case count > 1 && level > 0:
			return 0, 0, fmt.Errorf("similar lines occur %d times, and none is identical", count)
		}
		return best, len(olds), nil
	}
	return 0, 0, fmt.Errorf("its lines are not in the present file: %.200q", strings.Join(olds, "\n"))
}

// insertion returns the place of a hunk without lines to search for.
func (h *Hunk) insertion(lines, from int) int {
	if h.At > 0 || h.Known { // behind that line, as diff -u0 says
		return min(max(h.At, from), lines)
	}
	if h.After != "" {
		return min(from, lines)
	}
	return lines
}

func distance(a, b int) int {
	if a < b {
		return b - a
	}
	return a - b
}

func same(lines, olds []string, look func(string) string) bool {
	for i, o := range olds {
		if look(lines[i]) != look(o) {
			return false
		}
	}
	return true
}

func indexLine(lines []string, want string, from int) int {
	for i := from; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == want {
			return i
		}
	}
	for i := from; i < len(lines); i++ {
		if strings.Contains(lines[i], want) {
			return i
		}
	}
	return -1
}
