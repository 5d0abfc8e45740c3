package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// found is a part of a page, from one heading to the next, as the script of the search reads it.
type found struct {
	Page  string `json:"p"`
	Title string `json:"t"`
	To    string `json:"u"`
	Words string `json:"w"` // each word once, in lower case
}

// index writes the index of the search as a script: a page that is opened as a file may not fetch.
func index(pages []*document) ([]byte, error) {
	var all []found
	for _, d := range pages {
		at := address(d.file)
		part := found{Page: d.title, Title: d.title, To: at}
		words := map[string]bool{}
		end := func() {
			part.Words = strings.Join(sortedKeys(words), " ")
			all = append(all, part)
			clear(words)
		}
		for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
			if h, ok := n.(*ast.Heading); ok && h.Level > 1 {
				end()
				id, _ := h.AttributeString("id")
				name, _ := id.([]byte)
				part = found{Page: d.title, Title: plain(h, d.source), To: at + "#" + string(name)}
			}
			for _, w := range strings.FieldsFunc(strings.ToLower(written(n, d.source)), notInWord) {
				if len(w) > 1 && len(w) < 40 {
					words[w] = true
				}
			}
		}
		end()
	}
	var b bytes.Buffer
	b.WriteString("window.searchIndex = ")
	enc := json.NewEncoder(&b) // it escapes <, > and &
	if err := enc.Encode(all); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func notInWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
}

// written is the text of a block with its code.
func written(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it fails only if the function does
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			b.WriteByte(' ')
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				b.Write(line.Value(source))
			}
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
