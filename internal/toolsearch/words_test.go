package toolsearch

import (
	"slices"
	"strings"
	"testing"
)

// Vocabulary returns words.txt, for benchmarks.
func Vocabulary() string { return wordList }

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"createIssue":     "create issue",
		"create_issue":    "create issue",
		"create.issue":    "create issue",
		"create-issue":    "create issue",
		"HTTPServer":      "http server",
		"getURL":          "get url",
		"API-get-self":    "api get self",
		"GetAHORun":       "get aho run",
		"s3":              "s3 s 3",
		"issues2list":     "issues2list issues 2 list",
		"v1.2":            "v1 v 1 2",
		"Überall ÉCOLE":   "überall école",
		"转换 time":         "转 换 time",
		"don't":           "don t",
		" \xff--":         "",
		"ABCd":            "ab cd",
		"x\xffyZ":         "x y z",
		"web__fetchPage2": "web fetchpage2 fetch page 2",
	} {
		var got []string
		split(text, func(w string) { got = append(got, w) })
		if strings.Join(got, " ") != want {
			t.Errorf("split(%q) = %q, want %q", text, got, want)
		}
	}
}

// A line of words.txt that cannot take effect is a mistake.
func TestWordList(t *testing.T) {
	v := words()
	for phrase := range v.phrases {
		if n := strings.Count(phrase, " ") + 1; n > maxPhrase {
			t.Errorf("the phrase %q has %d words, want at most %d", phrase, n, maxPhrase)
		}
	}
	n := 0
	for line := range strings.Lines(wordList) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		list, ignored := strings.CutPrefix(line, "- ")
		group := strings.Split(list, ", ")
		if len(group) < 2 {
			t.Errorf("words.txt:%d: got %q, want a group of several words", n, line)
		}
		for i, w := range group {
			if w != strings.ToLower(strings.TrimSpace(w)) || w == "" {
				t.Errorf("words.txt:%d: got %q, want a word in lower case", n, w)
			}
			if slices.Contains(group[:i], w) {
				t.Errorf("words.txt:%d: %q is there twice", n, w)
			}
			if !ignored && v.ignored[w] {
				t.Errorf("words.txt:%d: %q is ignored, so it has no synonyms", n, w)
			}
		}
	}
}
