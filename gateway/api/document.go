package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var page string

// described is an operation as the page shows it.
type described struct {
	Method, Path, Summary, Description, ID string
	Params                                 []*huma.Param
	Body, Answer                           string
}

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
	return render(base, doc)
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

// render makes the page.
func render(base string, doc *huma.OpenAPI) ([]byte, error) {
	view := struct {
		Title, Version, Intro, Document string
		Operations                      []described
		Schemas                         []described
	}{Title: doc.Info.Title, Version: doc.Info.Version, Intro: doc.Info.Description, Document: base + "/openapi.json"}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, o := range operations(doc.Paths[path]) {
			view.Operations = append(view.Operations, describe(o))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas.Map())) {
		view.Schemas = append(view.Schemas, described{ID: name, Body: pretty(doc.Components.Schemas.Map()[name])})
	}
	t, err := template.New("docs").Parse(page)
	if err != nil {
		return nil, err
	}
	var html bytes.Buffer
	err = t.Execute(&html, view)
	return html.Bytes(), err
}

func describe(o *huma.Operation) described {
	d := described{Method: o.Method, Path: o.Path, Summary: o.Summary, Description: strings.ReplaceAll(o.Description, "`", ""), ID: o.OperationID, Params: o.Parameters}
	if o.RequestBody != nil {
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
			parts = append(parts, kind+" "+pretty(o.RequestBody.Content[kind].Schema))
		}
		d.Body = strings.Join(parts, "\n")
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if status == "default" {
			continue
		}
		d.Answer += status
		for kind, m := range o.Responses[status].Content {
			d.Answer += " " + kind + " " + pretty(m.Schema)
		}
		d.Answer += "\n"
	}
	return d
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
