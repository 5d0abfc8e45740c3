package llm_gemini //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"encoding/json"
	"strings"

	"google.golang.org/genai"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// unsigned stands for the signature of a call that another model made. The service documents it, and
// refuses such a call of its third generation without one.
const unsigned = "skip_thought_signature_validator"

// signature is the part of reasoning that is not text.
type signature struct {
	Signature []byte `json:"signature"`
	Of        kind   `json:"of"` // the part of the answer that it came with
}

type kind string

const (
	ofCall    kind = "call"
	ofText    kind = "text"
	ofThought kind = "thought"
)

// history writes a history as the API takes it. The user is first, and the results of an answer's
// calls are one content, which follows it.
type history struct {
	by    string // the provider and the model
	names names
	third bool

	out   []*genai.Content
	known provider.CallIDs
	tools map[string]string // names of the tools of the calls, by id
	shown []*genai.Part     // pictures of results, until the last result is written
}

func (h *history) write(messages []event.Message) []*genai.Content {
	h.tools = map[string]string{}
	for _, m := range messages {
		if m.Role != "tool" {
			h.show()
		}
		switch m.Role {
		case "assistant":
			h.add(genai.RoleModel, true, h.answer(m))
		case "tool":
			h.add(genai.RoleUser, h.results(), []*genai.Part{h.result(m)})
		default:
			h.add(genai.RoleUser, false, said(m))
		}
	}
	h.show()
	return h.out
}

// add adds parts to the last content, if they may be joined and it has the role, or as a new one.
func (h *history) add(role string, join bool, parts []*genai.Part) {
	if len(parts) == 0 {
		return
	}
	if n := len(h.out); join && n > 0 && h.out[n-1].Role == role {
		h.out[n-1].Parts = append(h.out[n-1].Parts, parts...)
		return
	}
	if len(h.out) == 0 && role != genai.RoleUser {
		h.out = append(h.out, genai.NewContentFromText("(The beginning of the conversation is not shown.)", genai.RoleUser))
	}
	h.out = append(h.out, &genai.Content{Role: role, Parts: parts})
}

// results reports whether the last content has results.
func (h *history) results() bool {
	n := len(h.out)
	return n > 0 && h.out[n-1].Parts[0].FunctionResponse != nil
}

// show adds the pictures of results that could not be in them.
func (h *history) show() {
	if len(h.shown) > 0 {
		h.add(genai.RoleUser, false, append([]*genai.Part{{Text: "The pictures of these results:"}}, h.shown...))
		h.shown = nil
	}
}

// answer writes an assistant's message.
func (h *history) answer(m event.Message) []*genai.Part {
	var out []*genai.Part
	var text, call []byte // signatures of what comes next
	first := true
	provider.Answer(m, h.by, func(r event.Reasoning) {
		var s signature
		if json.Unmarshal(r.Data, &s) != nil {
			return
		}
		switch s.Of {
		case ofText:
			text = s.Signature
		case ofCall:
			call = s.Signature
		case ofThought:
			out = append(out, &genai.Part{Text: r.Text, Thought: true, ThoughtSignature: s.Signature})
		}
	}, func() {
		if strings.TrimSpace(m.Content) != "" {
			out = append(out, &genai.Part{Text: m.Content, ThoughtSignature: text})
		}
	}, func(c event.ToolCall) {
		if first && call == nil && h.third { // of parallel calls, the first has the signature
			call = []byte(unsigned)
		}
		id, name := h.known.Add(c.ID), h.names.as(c.Name)
		h.tools[id] = name
		out = append(out, &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: arguments(c.Args)}, ThoughtSignature: call})
		first, call = false, nil
	})
	return out
}

func arguments(raw json.RawMessage) map[string]any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		v = string(raw)
	}
	if args, ok := v.(map[string]any); ok {
		return args
	}
	return map[string]any{"arguments": v}
}

// result writes the result of a call. Only later models take pictures in it.
func (h *history) result(m event.Message) *genai.Part {
	id := h.known.Of(m.ToolCallID)
	r := &genai.FunctionResponse{ID: id, Name: h.tools[id], Response: map[string]any{"output": m.Content}}
	for _, i := range m.Images {
		if h.third {
			r.Parts = append(r.Parts, genai.NewFunctionResponsePartFromBytes(i.Data, i.MimeType))
		} else {
			h.shown = append(h.shown, genai.NewPartFromBytes(i.Data, i.MimeType))
		}
	}
	return &genai.Part{FunctionResponse: r}
}

func said(m event.Message) []*genai.Part {
	var out []*genai.Part
	for _, i := range m.Images {
		out = append(out, genai.NewPartFromBytes(i.Data, i.MimeType))
	}
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, &genai.Part{Text: m.Content})
	}
	return out
}
