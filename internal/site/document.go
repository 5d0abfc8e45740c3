package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// document is one Markdown file.
type document struct {
	file    string // path in the repository
	section string // of the navigation; "" for one that the site does not have
	title   string
	source  []byte
	root    ast.Node
	heads   []heading
	links   []*link
}

// heading is a heading below the title, with the id that GitHub gives it.
type heading struct {
	Level int
	Text  string
	ID    string
}

// link is a link or an image, as it is written.
type link struct {
	to    string
	image bool
	line  int
	set   func(to string) // changes where it leads
}

// markdown reads what GitHub reads. HTML in a document is not passed on.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 1))),
)

func parse(file string, source []byte) (*document, error) {
	d := &document{file: file, source: source, root: markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext()))}
	used := map[string]int{}
	line := 1
	err := ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
			line = 1 + strings.Count(string(source[:n.Lines().At(0).Start]), "\n")
		}
		switch n := n.(type) {
		case *ast.Heading:
			words := plain(n, source)
			id := slug(words, used)
			n.SetAttributeString("id", []byte(id))
			if n.Level == 1 && d.title == "" {
				d.title = words
			} else {
				d.heads = append(d.heads, heading{n.Level, words, id})
			}
		case *ast.Link:
			d.links = append(d.links, &link{string(n.Destination), false, line, func(to string) { n.Destination = []byte(to) }})
		case *ast.Image:
			d.links = append(d.links, &link{string(n.Destination), true, line, func(to string) { n.Destination = []byte(to) }})
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	if d.title == "" {
		return nil, fmt.Errorf("%s has no title: begin it with a line \"# Title\"", file)
	}
	return d, nil
}

// plain is the text of a node without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it fails only if the function does
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		} else if t, ok := n.(*ast.String); ok && entering {
			b.Write(t.Value)
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// slug returns the id that GitHub gives a heading: lower case, letters, digits, dashes and
// underscores, a dash for each space, and a number if another heading has it.
func slug(words string, used map[string]int) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, words)
	n := used[id]
	used[id]++
	if n > 0 {
		return id + "-" + strconv.Itoa(n)
	}
	return id
}

// hasID reports whether the document has an anchor.
func (d *document) hasID(id string) bool {
	return slices.ContainsFunc(d.heads, func(h heading) bool { return h.ID == id }) || id == slug(d.title, map[string]int{})
}

// load reads the pages of the site in their order, and the documents that are only checked.
func load(repo fs.FS) ([]*document, error) {
	var docs []*document
	seen := map[string]bool{}
	read := func(file, section string) error {
		source, err := fs.ReadFile(repo, file)
		if err != nil {
			return err
		}
		d, err := parse(file, source)
		if err != nil {
			return err
		}
		d.section = section
		docs, seen[file] = append(docs, d), true
		return nil
	}
	for _, s := range sections {
		for _, pattern := range s.pages {
			files, err := fs.Glob(repo, strings.Replace(pattern, "/*", "/*.md", 1))
			if err != nil {
				return nil, err
			}
			for _, file := range files {
				if seen[file] {
					continue
				}
				if err := read(file, s.Title); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, file := range checked {
		if err := read(file, ""); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// target resolves where a link of a document leads: a path in the repository and an anchor of
// it. It returns false for a link that leads elsewhere.
func (d *document) target(to string) (file, id string, inside bool) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return "", "", false
	}
	file, id, _ = strings.Cut(to, "#")
	if file == "" {
		return d.file, id, true
	}
	return path.Join(path.Dir(d.file), file), id, true
}
