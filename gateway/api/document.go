package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var head string

// document adds a route for the document, or for what is made of it, once, when it is asked
// for first: the document does not change from then on.
func (a *API) document(path string, write func(http.Header, *huma.OpenAPI) ([]byte, error)) {
	type made struct {
		header http.Header
		body   []byte
	}
	once := sync.OnceValues(func() (made, error) {
		_, doc := a.made()
		m := made{header: http.Header{}}
		var err error
		m.body, err = write(m.header, doc)
		return m, err
	})
	a.route(Route{Pattern: "GET " + a.cfg.Base + path, Access: a.cfg.Docs, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, err := once()
		if err != nil {
			a.Refuse(w, r, err)
			return
		}
		maps.Copy(w.Header(), m.header)
		_, _ = w.Write(m.body) // a client that went away gets nothing
	})})
}

func writeDocument(h http.Header, doc *huma.OpenAPI) ([]byte, error) {
	h.Set("Content-Type", "application/json")
	return json.MarshalIndent(doc, "", "  ")
}

func writePage(h http.Header, base string, doc *huma.OpenAPI) ([]byte, error) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	return render(base, doc), nil
}

// operations returns the operations of a path, in the order of their methods.
func operations(item *huma.PathItem) []*huma.Operation {
	var out []*huma.Operation
	for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
		if o != nil {
			out = append(out, o)
		}
	}
	return out
}

// render makes the page. It does without html/template: see usage in cmd/yaya.
func render(base string, doc *huma.OpenAPI) []byte {
	var b bytes.Buffer
	// write escapes its arguments.
	write := func(format string, texts ...string) {
		args := make([]any, len(texts))
		for i, t := range texts {
			args[i] = html.EscapeString(t)
		}
		fmt.Fprintf(&b, format, args...)
	}
	write(head, doc.Info.Title, doc.Info.Version, doc.Info.Description, base+"/openapi.json")
	write("<h2>Operations</h2>\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, o := range operations(doc.Paths[path]) {
			writeOperation(write, o)
		}
	}
	write("<h2>Types</h2>\n")
	schemas := doc.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		write("<details id=\"type-%[1]s\"><summary><code>%[1]s</code></summary><pre>%[2]s</pre></details>\n", name, pretty(schemas[name]))
	}
	write("</html>\n")
	return b.Bytes()
}

func writeOperation(write func(format string, texts ...string), o *huma.Operation) {
	write("<details id=\"%s\"><summary><b>%s</b> <code>%s</code> %s</summary>\n", o.OperationID, o.Method, o.Path, o.Summary)
	write("<p>%s</p>\n", strings.ReplaceAll(o.Description, "`", ""))
	if len(o.Parameters) > 0 {
		write("<table><tr><th>parameter<th>in<th>what it is</tr>")
		for _, p := range o.Parameters {
			write("<tr><td><code>%s</code><td>%s<td>%s</tr>", p.Name, p.In, p.Description)
		}
		write("</table>\n")
	}
	if o.RequestBody != nil {
		write("<h4>Body</h4><pre>%s</pre>\n", strings.TrimSuffix(contents("", o.RequestBody.Content), "\n"))
	}
	answer := ""
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if status != "default" {
			answer += contents(status+" ", o.Responses[status].Content)
		}
	}
	if answer != "" {
		write("<h4>Answer</h4><pre>%s</pre>\n", answer)
	}
	write("</details>\n")
}

// contents has a line for each kind of content.
func contents(status string, kinds map[string]*huma.MediaType) string {
	if len(kinds) == 0 {
		return strings.TrimSpace(status) + "\n"
	}
	out := ""
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		out += status + kind + " " + pretty(kinds[kind].Schema) + "\n"
	}
	return out
}

func pretty(schema *huma.Schema) string {
	if schema == nil {
		return ""
	}
	if schema.Ref != "" {
		return schema.Ref[strings.LastIndex(schema.Ref, "/")+1:]
	}
	raw, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
