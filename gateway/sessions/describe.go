package sessions

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

func writeJSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil { // cannot be: they are our own types
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // a client that went away gets nothing
}

// eventData are the types of events with their data.
var eventData = map[string]any{
	SessionCreated: createdData{}, MessageAdded: messageData{}, TurnStarted: turnData{}, OutputDelta: deltaData{}, OutputCompleted: outputData{},
	ToolStarted: toolStartedData{}, ToolCompleted: toolCompletedData{}, ApprovalAsked: askData{}, ApprovalGranted: answerData{}, ApprovalDenied: answerData{},
	TurnCompleted: endData{}, SessionCompleted: nothing{}, SessionFailed: endData{}, SessionCanceled: endData{},
	ToolProgress: progressData{}, ApprovalWithdrawn: answerData{}, QueueChanged: queueData{}, VerifyStarted: verifyData{}, VerifyCompleted: verifyData{},
	SessionReset: endData{}, HistoryCompacted: compactedData{}, Resync: resyncData{},
}

// describe adds to the document what is no JSON in and JSON out.
func (s *Service) describe(doc *huma.OpenAPI) {
	reg := doc.Components.Schemas
	failure := &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{"application/json": {Schema: reg.Schema(reflect.TypeFor[Error](), true, "Error")}}}
	id := &huma.Param{Name: "session_id", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}
	add := func(method, path, operation, scope, summary string, params []*huma.Param, body *huma.RequestBody, status, mediaType string, schema *huma.Schema) {
		doc.AddOperation(&huma.Operation{
			Method: method, Path: path, OperationID: operation, Summary: summary, Description: "Scope for devices: `" + scope + "`.", Tags: []string{"sessions"},
			Parameters: append([]*huma.Param{id}, params...), RequestBody: body,
			Responses: map[string]*huma.Response{status: {Description: summary, Content: map[string]*huma.MediaType{mediaType: {Schema: schema}}}, "default": failure},
		})
	}
	text := &huma.Schema{Type: "string"}
	file := &huma.Schema{Type: "string", Format: "binary"}
	var union []*huma.Schema
	for _, name := range slices.Sorted(maps.Keys(eventData)) {
		data := reg.Schema(reflect.TypeOf(eventData[name]), true, name)
		reg.Map()["Event_"+name] = &huma.Schema{
			Type: "object", Required: []string{"ts", "session_id", "turn_id", "type", "data", "seq", "epoch"},
			Properties: map[string]*huma.Schema{
				"ts": {Type: "string", Format: "date-time"}, "session_id": text, "turn_id": text, "type": {Type: "string", Enum: []any{name}},
				"data": data, "seq": {Type: "integer", Format: "int64"}, "epoch": text, "entry_id": {Type: "integer", Format: "int64"},
			},
		}
		union = append(union, &huma.Schema{Ref: "#/components/schemas/Event_" + name})
	}
	reg.Map()["SessionEvent"] = &huma.Schema{OneOf: union, Description: "The data of a server-sent event, and a line of events.ndjson. What has an entry_id is on the tape, and its id <epoch>:<seq> can be resumed from; the others are volatile."}
	add("GET", "/v1/sessions/{session_id}/events", "streamEvents", "sessions:read", "Events: what there was since the cursor, or all, then what comes (server-sent events, each a SessionEvent)", []*huma.Param{
		{Name: "Last-Event-ID", In: "header", Schema: text, Description: "<epoch>:<seq> of the last event seen"},
		{Name: "after", In: "query", Schema: text, Description: "the same, for clients that cannot set headers"},
	}, nil, "200", "text/event-stream", text)
	add("GET", "/v1/sessions/{session_id}/export", "exportSession", "sessions:read", "The session's tape, one entry a line", nil, nil, "200", "application/x-ndjson", text)
	upload := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"multipart/form-data": {Schema: &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{"file": file}, Required: []string{"file"}}},
		"application/json":    {Schema: &huma.Schema{Type: "object", AdditionalProperties: false, Properties: map[string]*huma.Schema{"name": text, "mime_type": text, "data": {Type: "string", Description: "base64"}}, Required: []string{"data"}}},
	}}
	add("POST", "/v1/sessions/{session_id}/attachments", "attach", "sessions:write", "Upload a file of at most 25 MiB", nil, upload, "201", "application/json", reg.Schema(reflect.TypeFor[Uploaded](), true, "Uploaded"))
	add("GET", "/v1/sessions/{session_id}/attachments/{name}", "getAttachment", "sessions:read", "Download an attachment", []*huma.Param{{Name: "name", In: "path", Required: true, Schema: text}}, nil, "200", "application/octet-stream", file)
	add("GET", "/v1/sessions/{session_id}/artifacts/{artifact_id}", "getArtifact", "sessions:read", "Download what a tool has left", []*huma.Param{{Name: "artifact_id", In: "path", Required: true, Schema: text}}, nil, "200", "application/octet-stream", file)
}

//go:embed docs.html
var page string

// described is an operation as the page shows it.
type described struct {
	Method, Path, Summary, Description, ID string
	Params                                 []*huma.Param
	Body, Answer                           string
}

// docs serves the OpenAPI document, and a page made of it, which needs no script.
func (s *Service) docs(mux *http.ServeMux, doc *huma.OpenAPI) error {
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw) // a client that went away gets nothing
	})
	view := struct {
		Title, Version, Intro string
		Operations            []described
		Schemas               []described
	}{Title: doc.Info.Title, Version: doc.Info.Version, Intro: doc.Info.Description}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if o != nil {
				view.Operations = append(view.Operations, operation(o))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas.Map())) {
		view.Schemas = append(view.Schemas, described{ID: name, Body: pretty(doc.Components.Schemas.Map()[name])})
	}
	t, err := template.New("docs").Parse(page)
	if err != nil {
		return err
	}
	var html bytes.Buffer
	if err := t.Execute(&html, view); err != nil {
		return err
	}
	mux.HandleFunc("GET /v1/docs", func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(html.Bytes()) // a client that went away gets nothing
	})
	return nil
}

func operation(o *huma.Operation) described {
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
