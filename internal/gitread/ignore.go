package gitread

import (
	"os"
	"path"
	"strings"
)

// pattern is a line of .gitignore or .gitattributes (gitignore(5)).
type pattern struct {
	text     string
	negated  bool
	dirOnly  bool
	anchored bool // it has a slash: it is for the path, not for the name
}

func parsePattern(line string) (p pattern, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return p, false
	}
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.anchored = strings.Contains(line, "/")
	p.text = strings.TrimPrefix(line, "/")
	return p, p.text != ""
}

// match tells whether the pattern is for a path, relative to the folder that has the
// pattern.
func (p pattern) match(rel string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	if !p.anchored {
		rel = path.Base(rel)
	}
	steps := 100_000 // a pattern of many stars could take forever
	return wild(p.text, rel, true, &steps)
}

// wild matches as git's wildmatch does: * and ? stop at slashes, ** between slashes
// does not. begin tells that the pattern is at its beginning, or behind a slash.
func wild(p, s string, begin bool, steps *int) bool {
	for p != "" {
		if *steps--; *steps < 0 {
			return false
		}
		switch c := p[0]; c {
		case '*':
			n := 1
			for n < len(p) && p[n] == '*' {
				n++
			}
			rest := p[n:]
			if n > 1 && begin && rest == "" {
				return true
			}
			if n > 1 && begin && rest[0] == '/' { // any folders, none as well
				for {
					if wild(rest[1:], s, true, steps) {
						return true
					}
					_, after, ok := strings.Cut(s, "/")
					if !ok {
						return false
					}
					s = after
				}
			}
			for {
				if wild(rest, s, false, steps) {
					return true
				}
				if s == "" || s[0] == '/' {
					return false
				}
				s = s[1:]
			}
		case '?':
			if s == "" || s[0] == '/' {
				return false
			}
			p, s = p[1:], s[1:]
		case '[':
			if s == "" || s[0] == '/' {
				return false
			}
			rest, ok := class(p, s[0])
			if !ok {
				return false
			}
			p, s = rest, s[1:]
		default:
			if c == '\\' && len(p) > 1 {
				p = p[1:]
			}
			if s == "" || s[0] != p[0] {
				return false
			}
			begin = p[0] == '/'
			p, s = p[1:], s[1:]
			continue
		}
		begin = false
	}
	return s == ""
}

var classes = map[string]func(c byte) bool{
	"alpha": func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' },
	"digit": func(c byte) bool { return c >= '0' && c <= '9' },
	"alnum": func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' },
	"lower": func(c byte) bool { return c >= 'a' && c <= 'z' },
	"upper": func(c byte) bool { return c >= 'A' && c <= 'Z' },
	"space": func(c byte) bool { return c == ' ' || c >= 9 && c <= 13 },
	"punct": func(c byte) bool {
		return c > ' ' && c < 0x7f && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
	},
	"xdigit": func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' },
}

// class matches one byte with [a-z], and returns what follows.
func class(p string, c byte) (rest string, ok bool) {
	p = p[1:]
	negated := false
	if p != "" && (p[0] == '!' || p[0] == '^') {
		negated, p = true, p[1:]
	}
	found := false
	for first := true; ; first = false {
		if p == "" {
			return "", false
		}
		if p[0] == ']' && !first {
			return p[1:], found != negated
		}
		if name, ok := strings.CutPrefix(p, "[:"); ok {
			word, after, closed := strings.Cut(name, ":]")
			in := classes[word]
			if !closed || in == nil {
				return "", false
			}
			found = found || in(c)
			p = after
			continue
		}
		if p[0] == '\\' && len(p) > 1 {
			p = p[1:]
		}
		lo := p[0]
		p = p[1:]
		hi := lo
		if len(p) > 1 && p[0] == '-' && p[1] != ']' {
			if hi = p[1]; hi == '\\' && len(p) > 2 {
				p = p[1:]
				hi = p[1]
			}
			p = p[2:]
		}
		found = found || lo <= c && c <= hi
	}
}

// ignores is the patterns of a folder, and of those above.
type ignores struct {
	above    *ignores
	base     string // of the folder: "" or "a/b/"
	patterns []pattern
}

func (g *ignores) with(base string, data []byte) *ignores {
	var ps []pattern
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\uFEFF")) {
		if p, ok := parsePattern(strings.TrimRight(line, "\r\n")); ok {
			ps = append(ps, p)
		}
	}
	if len(ps) == 0 {
		return g
	}
	return &ignores{g, base, ps}
}

// match tells whether a path of the repository is ignored: the last pattern of the
// nearest folder decides.
func (g *ignores) match(p string, dir bool) bool {
	for ; g != nil; g = g.above {
		rel := strings.TrimPrefix(p, g.base)
		for n := len(g.patterns) - 1; n >= 0; n-- {
			if g.patterns[n].match(rel, dir) {
				return !g.patterns[n].negated
			}
		}
	}
	return false
}

// ignored adds the .gitignore of an open folder. A link is not followed.
func ignored(g *ignores, dir *os.Root, base string) *ignores {
	info, err := dir.Lstat(".gitignore")
	if err != nil || !info.Mode().IsRegular() {
		return g
	}
	data, err := readFile(dir, ".gitignore", maxSmall)
	if err != nil {
		return g // as git does with one that cannot be read
	}
	return g.with(base, data)
}
