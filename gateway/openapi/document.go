package openapi

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

// Serve serves the document below base as openapi.json, and as docs a page made of
// it, which needs no script. Both are made when they are asked for first: the document
// must not change from then on. An error of making one is the caller's to report.
func Serve(mux *http.ServeMux, base string, doc *huma.OpenAPI, failed func(http.ResponseWriter, *http.Request, error)) {
	serve := func(path string, header func(http.Header), content func() ([]byte, error)) {
		once := sync.OnceValues(content)
		mux.HandleFunc("GET "+base+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := once()
			if err != nil {
				failed(w, r, err)
				return
			}
			header(w.Header())
			_, _ = w.Write(body) // a client that went away gets nothing
		})
	}
	serve("/openapi.json", func(h http.Header) { h.Set("Content-Type", "application/json") }, func() ([]byte, error) { return json.MarshalIndent(doc, "", "  ") })
	serve("/docs", func(h http.Header) {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
	}, func() ([]byte, error) { return render(base, doc) })
}

// render makes the page.
func render(base string, doc *huma.OpenAPI) ([]byte, error) {
	view := struct {
		Title, Version, Intro, Document string
		Operations                      []described
		Schemas                         []described
	}{Title: doc.Info.Title, Version: doc.Info.Version, Intro: doc.Info.Description, Document: base + "/openapi.json"}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, o := range Operations(doc.Paths[path]) {
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
