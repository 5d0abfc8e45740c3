package tool_web //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Bounds of what comes of a page.
const (
	maxText  = 4 << 20 // addresses of links may be longer than they are in the page
	maxTitle = 300
	minMain  = 200 // bytes of text that make a part of a page its content
)

// Elements whose content is not text, and those that lead around and not to the content.
var (
	silent = []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Noembed, atom.Noframes, atom.Canvas, atom.Audio, atom.Video, atom.Select, atom.Textarea, atom.Datalist}
	around = []atom.Atom{atom.Nav, atom.Footer, atom.Button, atom.Dialog}
)

// void are elements without an end (HTML, section 13.1.2).
var void = []atom.Atom{atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Source, atom.Track, atom.Wbr}

// breaks are how many ends of lines stand before and after an element.
var breaks = map[atom.Atom]int{
	atom.Div: 1, atom.Li: 1, atom.Tr: 1, atom.Dt: 1, atom.Dd: 1, atom.Option: 1, atom.Figcaption: 1, atom.Summary: 1, atom.Caption: 1,
	atom.P: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 2, atom.Ol: 2, atom.Dl: 2, atom.Table: 2, atom.Pre: 2, atom.Blockquote: 2, atom.Hr: 2,
	atom.Section: 2, atom.Article: 2, atom.Main: 2, atom.Header: 2, atom.Footer: 2, atom.Nav: 2, atom.Aside: 2, atom.Figure: 2, atom.Form: 2, atom.Fieldset: 2, atom.Details: 2, atom.Address: 2,
}

// readable returns the text of a page, with headings, lists, tables and links, and its title. It
// reads tags one after another and builds no tree, so no nesting costs more than its bytes. A page
// that has little else keeps what leads around.
func readable(page string, at *url.URL) (text, title string) {
	r := render(page, at, around)
	if len(bytes.TrimSpace(r.out)) < minMain {
		if all := render(page, at, nil); len(all.out) > len(r.out) {
			r = all
		}
	}
	out := r.out
	if main := bytes.TrimSpace(r.main); len(main) >= minMain {
		out = main
	}
	text = strings.TrimSpace(string(out))
	if r.cut {
		text += "\n\n[the text is longer]"
	}
	return text, cut.Line(strings.Join(strings.Fields(r.title), " "), maxTitle)
}

// renderer writes the text of a page.
type renderer struct {
	at    *url.URL
	skips []atom.Atom

	out   []byte
	lines int  // ends of lines that have to come before the next text
	space bool // so does a space
	mark  int  // where a mark of a heading or an item begins that has no text yet, -1 without one
	cut   bool // there was too much

	title   string
	naming  bool // within the title
	skip    string
	depth   int    // of elements of that name, while one is skipped
	pre     int    // of preformatted text
	href    string // of the open link, "" outside one
	link    int    // where it began
	cells   int    // of the present row
	main    []byte // what the main element has, or the first article
	mainAt  int
	mainTag string // the open one
}

func render(page string, at *url.URL, around []atom.Atom) *renderer {
	r := &renderer{at: at, skips: slices.Concat(silent, around), mark: -1}
	z := html.NewTokenizer(strings.NewReader(page))
	for !r.cut {
		switch z.Next() {
		case html.ErrorToken: // the end: what is read is in memory
			r.endMain()
			return r
		case html.TextToken:
			r.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			r.start(z.Token())
		case html.EndTagToken:
			name, _ := z.TagName()
			r.end(string(name))
		case html.CommentToken, html.DoctypeToken:
		}
	}
	r.endMain()
	return r
}

// start begins an element.
func (r *renderer) start(t html.Token) {
	if r.skip != "" {
		if t.Data == r.skip && t.Type == html.StartTagToken {
			r.depth++
		}
		return
	}
	if t.DataAtom == atom.Title && r.title == "" {
		r.naming = true
		return
	}
	if slices.Contains(r.skips, t.DataAtom) || hidden(t) && !slices.Contains(void, t.DataAtom) {
		if t.Type == html.StartTagToken {
			r.skip, r.depth = t.Data, 1
		}
		return
	}
	r.lines = max(r.lines, breaks[t.DataAtom])
	switch t.Data {
	case "br":
		r.lines++
		r.lines = min(r.lines, 2)
	case "hr":
		r.write("---")
		r.lines = 2
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.begin(strings.Repeat("#", int(t.Data[1]-'0')) + " ")
	case "li":
		r.begin("- ")
	case "tr":
		r.cells = 0
	case "td", "th":
		if r.cells++; r.cells > 1 {
			r.space = false
			r.write(" | ")
		}
	case "pre":
		r.write("```\n")
		r.pre++
	case "img":
		if alt := strings.Join(strings.Fields(attribute(t, "alt")), " "); alt != "" {
			r.write("[picture: " + alt + "]")
		}
	case "a":
		r.endLink()
		r.startLink(attribute(t, "href"))
	case "main", "article":
		if r.mainTag == "" && (r.main == nil || t.Data == "main") {
			r.mainTag, r.mainAt = t.Data, len(r.out)
		}
	}
}

// end ends an element.
func (r *renderer) end(name string) {
	if r.skip != "" {
		if name == r.skip {
			if r.depth--; r.depth == 0 {
				r.skip = ""
			}
		}
		return
	}
	switch name {
	case "title":
		r.naming = false
	case "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6":
		r.unmark()
	case "pre":
		if r.pre > 0 {
			r.pre--
			if len(r.out) > 0 && r.out[len(r.out)-1] != '\n' {
				r.out = append(r.out, '\n')
			}
			r.lines, r.space = 0, false
			r.write("```")
		}
	case "a":
		r.endLink()
	case r.mainTag:
		if name != "" {
			r.endMain()
		}
	}
	r.lines = max(r.lines, breaks[atom.Lookup([]byte(name))])
}

// hidden reports whether a page does not show an element: its text is for somebody else than the
// person who would read the page.
func hidden(t html.Token) bool {
	for _, a := range t.Attr {
		switch a.Key {
		case "hidden":
			return a.Val != "until-found"
		case "aria-hidden":
			return a.Val == "true"
		case "style":
			if s := strings.ReplaceAll(strings.ToLower(a.Val), " ", ""); strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func (r *renderer) startLink(href string) {
	u, err := url.Parse(strings.TrimSpace(href))
	if err != nil || href == "" || strings.HasPrefix(href, "#") || len(href) > maxURL {
		return
	}
	if u = r.at.ResolveReference(u); u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	if r.write("["); !r.cut {
		r.href, r.link = u.String(), len(r.out)-1
	}
}

// endLink ends an open link; one without text leaves nothing.
func (r *renderer) endLink() {
	if r.href == "" {
		return
	}
	if len(r.out) == r.link+1 {
		r.out = r.out[:r.link]
	} else {
		r.out, r.mark = append(r.out, "]("+r.href+")"...), -1
	}
	r.href = ""
}

func (r *renderer) endMain() {
	if r.mainTag != "" {
		r.endLink()
		r.main, r.mainTag = bytes.Clone(r.out[min(r.mainAt, len(r.out)):]), ""
	}
}

// text writes text, whose white space counts in preformatted text alone.
func (r *renderer) text(s string) {
	switch {
	case r.naming:
		r.title += cut.Text(s, 2*maxTitle)
		return
	case r.skip != "" || s == "":
		return
	case r.pre > 0:
		r.write(s)
		return
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	r.space = r.space || unicode.IsSpace(first)
	if words := strings.Fields(s); len(words) > 0 {
		r.write(strings.Join(words, " "))
		r.space = unicode.IsSpace(last)
	}
}

// begin writes the mark of a heading or an item.
func (r *renderer) begin(mark string) {
	r.unmark()
	at := len(r.out)
	r.write(mark)
	r.mark = at
}

// unmark takes a mark away that has got no text.
func (r *renderer) unmark() {
	if r.mark >= 0 {
		r.out, r.lines = r.out[:r.mark], max(r.lines, 1)
	}
	r.mark = -1
}

// flush writes the white space that has to come before what follows.
func (r *renderer) flush() {
	switch at := len(r.out); {
	case at == 0, r.mark >= 0, r.href != "" && at == r.link+1:
	case r.lines > 0:
		r.out = append(r.out, "\n\n"[:r.lines]...)
	case r.space && r.out[at-1] != ' ' && r.out[at-1] != '\n':
		r.out = append(r.out, ' ')
	}
	r.lines, r.space = 0, false
}

func (r *renderer) write(s string) {
	if len(r.out)+len(s) > maxText {
		r.cut = true
		return
	}
	r.flush()
	r.out, r.mark = append(r.out, s...), -1
}
