package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// entry is an id that the document describes.
type entry struct {
	line    int
	planned bool // it is marked as not implemented
}

// described is the form of an entry: - **Y-1** One sentence.
var described = regexp.MustCompile(`^- \*\*([^*]+)\*\* +(\S.*)$`)

// describedIn reads the entries of the document below root. An id that is described
// twice, and an entry without a sentence, are problems.
func describedIn(root string) (map[string]entry, []problem, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document))) //nolint:forbidigo,gosec // a tool for this repository
	if err != nil {
		return nil, nil, err
	}
	doc, problems := map[string]entry{}, []problem(nil)
	for i, text := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(text, "- **") {
			continue
		}
		m := described.FindStringSubmatch(text)
		if m == nil || !whole(m[1]) {
			problems = append(problems, problem{document, i + 1, "the entry is not an id and a sentence: write - **Y-1** and what it promises"})
			continue
		}
		if e, ok := doc[m[1]]; ok {
			problems = append(problems, problem{document, i + 1, fmt.Sprintf("%s is described twice, first in line %d", m[1], e.line)})
			continue
		}
		doc[m[1]] = entry{i + 1, strings.HasPrefix(m[2], "*Not implemented")}
	}
	return doc, problems, nil
}

// whole reports whether s is one id and nothing else.
func whole(s string) bool {
	ids, _ := quotedIn(s)
	return len(ids) == 1 && ids[0] == s
}

// requirement reports whether an id is one that a test has to quote: all that the
// document has of the families with a span.
func requirement(id string) bool {
	for _, s := range implemented {
		if strings.HasPrefix(id, s.prefix+"-") {
			return true
		}
	}
	return false
}

func order(a, b problem) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
}
