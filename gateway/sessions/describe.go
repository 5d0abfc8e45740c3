package sessions

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/gateway/openapi"
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
	failure := openapi.Errors[Error](doc)
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
