package sessions

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// eventData are the types of events with their data.
var eventData = map[string]any{
	SessionCreated: createdData{}, MessageAdded: messageData{}, TurnStarted: turnData{}, OutputDelta: deltaData{}, OutputCompleted: outputData{},
	ToolStarted: toolStartedData{}, ToolCompleted: toolCompletedData{}, ApprovalAsked: askData{}, ApprovalGranted: answerData{}, ApprovalDenied: answerData{},
	TurnCompleted: endData{}, SessionCompleted: nothing{}, SessionFailed: endData{}, SessionCanceled: endData{},
	ToolProgress: progressData{}, ApprovalWithdrawn: answerData{}, QueueChanged: queueData{}, VerifyStarted: verifyData{}, VerifyCompleted: verifyData{},
	SessionReset: endData{}, HistoryCompacted: compactedData{}, ModelChanged: modelData{}, ModeChanged: modeData{}, Notice: noticeData{}, ModelRetry: retryData{}, ModelFallback: fallbackData{}, Resync: resyncData{},
}

// fileRoutes declares the operations that are not JSON in and JSON out.
func (s *Service) fileRoutes() {
	text := &huma.Schema{Type: "string"}
	file := &huma.Schema{Type: "string", Format: "binary"}
	// describe completes the description of an operation by what it takes and answers.
	describe := func(params []*huma.Param, body *huma.RequestBody, mediaType string, schema func(api.Schemas) *huma.Schema) func(api.Schemas, *huma.Operation) {
		return func(reg api.Schemas, o *huma.Operation) {
			o.Parameters = append([]*huma.Param{{Name: "session_id", In: "path", Required: true, Schema: text}}, params...)
			o.RequestBody = body
			o.Responses = map[string]*huma.Response{strconv.Itoa(o.DefaultStatus): {Description: o.Summary, Content: map[string]*huma.MediaType{mediaType: {Schema: schema(reg)}}}}
		}
	}
	is := func(schema *huma.Schema) func(api.Schemas) *huma.Schema {
		return func(api.Schemas) *huma.Schema { return schema }
	}
	named := func(name string) []*huma.Param {
		return []*huma.Param{{Name: name, In: "path", Required: true, Schema: text}}
	}
	s.Plain(op("GET", "/v1/sessions/{session_id}/events", "streamEvents", auth.SessionsRead, "Stream events: those since the cursor, or all, then new ones (server-sent events, each a SessionEvent)", http.StatusOK), describe([]*huma.Param{
		{Name: "Last-Event-ID", In: "header", Schema: text, Description: "<epoch>:<seq> of the last event seen"},
		{Name: "after", In: "query", Schema: text, Description: "the same, for clients that cannot set headers"},
		{Name: "follow", In: "query", Schema: &huma.Schema{Type: "boolean", Default: true}, Description: "false: the stream ends where new events would begin"},
	}, nil, "text/event-stream", func(reg api.Schemas) *huma.Schema {
		describeEvents(reg)
		return text
	}), s.events)
	s.Plain(op("GET", "/v1/sessions/{session_id}/export", "exportSession", auth.SessionsRead, "Export the session's tape, one entry per line", http.StatusOK), describe(nil, nil, "application/x-ndjson", is(text)), s.export)
	upload := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"multipart/form-data": {Schema: &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{"file": file}, Required: []string{"file"}}},
		"application/json":    {Schema: &huma.Schema{Type: "object", AdditionalProperties: false, Properties: map[string]*huma.Schema{"name": text, "mime_type": text, "data": {Type: "string", Description: "base64"}}, Required: []string{"data"}}},
	}}
	s.Plain(op("POST", "/v1/sessions/{session_id}/attachments", "attach", auth.SessionsWrite, "Upload a file of at most 25 MiB", http.StatusCreated), describe(nil, upload, "application/json", func(reg api.Schemas) *huma.Schema {
		return reg.Schema(reflect.TypeFor[Uploaded](), true, "Uploaded")
	}), s.attach)
	s.Plain(op("GET", "/v1/sessions/{session_id}/attachments/{name}", "getAttachment", auth.SessionsRead, "Download an attachment", http.StatusOK), describe(named("name"), nil, "application/octet-stream", is(file)), s.attachment)
	s.Plain(op("GET", "/v1/sessions/{session_id}/artifacts/{artifact_id}", "getArtifact", auth.SessionsRead, "Download an artifact of a tool", http.StatusOK), describe(named("artifact_id"), nil, "application/octet-stream", is(file)), s.artifact)
}

// describeEvents adds the events to the schemas of the document.
func describeEvents(reg api.Schemas) {
	text := &huma.Schema{Type: "string"}
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
	reg.Map()["SessionEvent"] = &huma.Schema{OneOf: union, Description: "The data of a server-sent event, and a line of events.ndjson. An event with an entry_id is on the tape, and a client can resume from its id <epoch>:<seq>; the others are volatile."}
}
