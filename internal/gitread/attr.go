package gitread

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
)

// attribute is the part of a line of .gitattributes that determines how content is
// stored.
type attribute struct {
	pattern pattern
	text    string // "", "set", "unset" or "auto"
	eol     bool
	filter  string
}

func parseAttributes(data []byte) []attribute {
	var out []attribute
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0][0] == '#' || words[0][0] == '[' || words[0][0] == '!' {
			continue
		}
		p, ok := parsePattern(strings.Trim(words[0], `"`))
		if !ok {
			continue
		}
		a := attribute{pattern: p}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch {
			case w == "text", w == "crlf":
				a.text = "set"
			case w == "-text", w == "-crlf", w == "binary":
				a.text = "unset"
			case w == "text=auto":
				a.text = "auto"
			case key == "eol":
				a.eol = true
			case key == "filter":
				a.filter = value
			case w == "-filter", w == "!filter":
				a.filter = "-"
			}
		}
		if a.text != "" || a.eol || a.filter != "" {
			out = append(out, a)
		}
	}
	return out
}

// conversion describes how the content of a file differs from its stored form.
type conversion struct {
	lines  bool   // CR LF may be stored as LF
	filter string // of .gitattributes; it is not run
}

// conversion looks at the attributes of a path of the repository: of its folder and
// those above, inside the workspace as they are, outside as they are in the index.
func (r *Repo) conversion(ctx context.Context, ix *index, p string) conversion {
	var text, filter string
	var eol bool
	look := func(base string, as []attribute) {
		for _, a := range slices.Backward(as) {
			if !a.pattern.match(strings.TrimPrefix(p, base), false) {
				continue
			}
			if text == "" {
				text = a.text
			}
			if filter == "" {
				filter = a.filter
			}
			eol = eol || a.eol
		}
	}
	look("", r.attributes("info/attributes", func() ([]byte, error) { return readFile(r.common, "info/attributes", maxSmall) }))
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		base := dir + "/"
		if dir == "." {
			base = ""
		}
		name := base + ".gitattributes"
		look(base, r.attributes(name, func() ([]byte, error) { return r.ofTree(ctx, ix, name) }))
		if dir == "." {
			break
		}
	}
	c := conversion{filter: strings.TrimPrefix(filter, "-")}
	auto := r.cfg["core.autocrlf"] == "input" || r.cfg.is("core.autocrlf", false)
	c.lines = text == "set" || text == "auto" || text == "" && (eol || auto)
	return c
}

func (r *Repo) attributes(key string, read func() ([]byte, error)) []attribute {
	as, known := r.attrs[key]
	if !known {
		if data, err := read(); err == nil { // an unreadable one has no effect
			as = parseAttributes(data)
		}
		r.attrs[key] = as
	}
	return as
}

// ofTree reads a small file of the repository: inside the workspace from the disk,
// outside from the index.
func (r *Repo) ofTree(ctx context.Context, ix *index, name string) ([]byte, error) {
	if rel, ok := strings.CutPrefix(name, r.prefix); ok {
		return readFile(r.work, rel, maxSmall)
	}
	e := ix.find(name)
	if e == nil || e.mode&modeType != modeRegular {
		return nil, nil
	}
	return r.store.get(ctx, e.id, kindBlob)
}

// stored returns content as git would store it; ok is false if that cannot be known
// without running a program.
func (c conversion) stored(data []byte) (out []byte, ok bool) {
	switch c.filter {
	case "":
	case "lfs": // its pointer is a function of the content
		if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/v1\n")) && len(data) < 1024 {
			return data, true // the content has not been fetched
		}
		return fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256(data), len(data)), true
	default:
		return nil, false
	}
	if c.lines && bytes.IndexByte(data[:min(len(data), 8<<10)], 0) < 0 {
		return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), true
	}
	return data, true
}
