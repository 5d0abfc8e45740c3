package screen

import (
	"slices"
	"strings"
)

// language tells the parts of a program's text apart. It knows enough for comments, strings,
// numbers and keywords; libraries that know a language's grammar are larger than all of yaya's
// terminal.
type language struct {
	keywords string   // between spaces
	comments []string // to the end of the line
	block    [2]string
	strings  []string // the signs around strings on a line
	long     []string // the signs around strings of several lines
}

var (
	cLike = language{
		keywords: " abstract async await bool boolean break case catch char class const continue default delete do double else enum export extends extern false final finally float for func function if implements import in instanceof int interface let long namespace new null nullptr of override package private protected public return short signed sizeof static struct super switch template this throw true try type typedef typeof undefined union unsigned using var virtual void volatile while yield ",
		comments: []string{"//"}, block: [2]string{"/*", "*/"}, strings: []string{`"`, `'`}, long: []string{"`"},
	}
	golang = language{
		keywords: " any bool break byte case chan const continue default defer else error fallthrough false for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type uint var ",
		comments: []string{"//"}, block: [2]string{"/*", "*/"}, strings: []string{`"`, `'`}, long: []string{"`"},
	}
	rust = language{
		keywords: " as async await bool break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static str struct super trait true type unsafe use where while ",
		comments: []string{"//"}, block: [2]string{"/*", "*/"}, strings: []string{`"`},
	}
	python = language{
		keywords: " and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return self True try while with yield ",
		comments: []string{"#"}, strings: []string{`"`, `'`}, long: []string{`"""`, `'''`},
	}
	ruby = language{
		keywords: " begin class def do else elsif end ensure false for if in module nil not or require rescue return self then true unless until when while yield ",
		comments: []string{"#"}, strings: []string{`"`, `'`},
	}
	shell = language{
		keywords: " case do done elif else esac exit export fi for function if in local return set then until while cd echo sudo ",
		comments: []string{"#"}, strings: []string{`"`, `'`},
	}
	data = language{keywords: " true false null yes no ", comments: []string{"#", "//"}, strings: []string{`"`, `'`}}
	sql  = language{
		keywords: " ADD ALTER AND AS ASC BY CASE CREATE DELETE DESC DISTINCT DROP ELSE END EXISTS FROM GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER PRIMARY SELECT SET TABLE THEN UNION UPDATE VALUES VIEW WHEN WHERE WITH ",
		comments: []string{"--"}, block: [2]string{"/*", "*/"}, strings: []string{`'`},
	}
	diff = language{}
)

var languages = map[string]*language{
	"go": &golang, "golang": &golang, "rust": &rust, "rs": &rust,
	"python": &python, "py": &python, "ruby": &ruby, "rb": &ruby,
	"sh": &shell, "bash": &shell, "shell": &shell, "zsh": &shell, "dockerfile": &shell, "make": &shell, "makefile": &shell,
	"js": &cLike, "javascript": &cLike, "ts": &cLike, "typescript": &cLike, "jsx": &cLike, "tsx": &cLike,
	"c": &cLike, "cpp": &cLike, "c++": &cLike, "h": &cLike, "java": &cLike, "cs": &cLike, "csharp": &cLike,
	"kotlin": &cLike, "swift": &cLike, "php": &cLike, "dart": &cLike, "scala": &cLike, "zig": &cLike, "css": &cLike,
	"json": &data, "jsonc": &data, "yaml": &data, "yml": &data, "toml": &data, "ini": &data,
	"sql": &sql, "diff": &diff, "patch": &diff,
}

// languageOf returns the language that a code block names; nil for one that is not known.
func languageOf(info string) *language {
	name, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(info), "{."), " ")
	return languages[strings.ToLower(strings.Trim(name, "}"))]
}

// highlighter colours the lines of a code block.
type highlighter struct {
	palette Palette
	lang    *language
	until   string // the sign that ends a comment or a string of earlier lines
	style   string // of it
}

func (h *highlighter) line(s string) []span {
	switch {
	case h.lang == nil:
		return []span{{"", s}}
	case h.lang == &diff:
		return []span{{DiffStyle(h.palette, s), s}}
	}
	var out []span
	plain := 0
	add := func(from, to int, style string) {
		if plain < from {
			out = append(out, span{"", s[plain:from]})
		}
		out = append(out, span{style, s[from:to]})
		plain = to
	}
	i := 0
	if h.until != "" {
		i = h.through(s, 0)
		add(0, i, h.style)
		if i == len(s) && !strings.HasSuffix(s, h.until) {
			return out
		}
		h.until = ""
	}
	for i < len(s) {
		rest := s[i:]
		end := i
		switch {
		case starts(rest, h.lang.comments) != "" && (rest[0] != '#' || i == 0 || s[i-1] == ' ' || s[i-1] == '\t'):
			end = len(s)
			add(i, end, Faint)
		case h.lang.block[0] != "" && strings.HasPrefix(rest, h.lang.block[0]):
			h.until, h.style = h.lang.block[1], Faint
			end = h.long(s, i, len(h.lang.block[0]))
			add(i, end, Faint)
		case starts(rest, h.lang.long) != "":
			h.until, h.style = starts(rest, h.lang.long), h.palette.Literal
			end = h.long(s, i, len(h.until))
			add(i, end, h.palette.Literal)
		case starts(rest, h.lang.strings) != "":
			end = i + quotedEnd(rest)
			add(i, end, h.palette.Literal)
		case rest[0] >= '0' && rest[0] <= '9':
			for end < len(s) && (s[end] == '.' || s[end] == '_' || wordy(s[end])) {
				end++
			}
			add(i, end, h.palette.Literal)
		case wordy(rest[0]) || rest[0] == '_':
			for end < len(s) && (s[end] == '_' || wordy(s[end])) {
				end++
			}
			if h.keyword(s[i:end]) {
				add(i, end, h.palette.Keyword)
			}
		default:
			end++
		}
		i = end
	}
	if plain < len(s) {
		out = append(out, span{"", s[plain:]})
	}
	return out
}

func (h *highlighter) keyword(w string) bool {
	if h.lang == &sql {
		w = strings.ToUpper(w)
	}
	return len(w) < 20 && strings.Contains(h.lang.keywords, " "+w+" ")
}

// long returns the end of a comment or string that begins at i and may have several lines; until
// stays set if it goes on in the next one.
func (h *highlighter) long(s string, i, sign int) int {
	end := h.through(s, i+sign)
	if end < len(s) || strings.HasSuffix(s[i+sign:], h.until) {
		h.until = ""
	}
	return end
}

// through returns the place behind the next sign that ends what is open, or the end of the line.
func (h *highlighter) through(s string, from int) int {
	n := strings.Index(s[from:], h.until)
	if n < 0 {
		return len(s)
	}
	return from + n + len(h.until)
}

// starts returns the sign that s begins with, "" for none.
func starts(s string, signs []string) string {
	if i := slices.IndexFunc(signs, func(sign string) bool { return strings.HasPrefix(s, sign) }); i >= 0 {
		return signs[i]
	}
	return ""
}

// quotedEnd returns the length of the string that s begins with.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

// DiffStyle returns the style of a line of a patch.
func DiffStyle(p Palette, line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return p.Good
	case strings.HasPrefix(line, "-"):
		return p.Bad
	case strings.HasPrefix(line, "@"):
		return Faint
	}
	return ""
}
