package llm_anthropic //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/kernel/event"
)

// messages writes a history as the API takes it: user and assistant alternate, the user is first,
// and the results of an answer's calls are one message. by is the provider and the model.
func messages(history []event.Message, by string) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	known := ids{as: map[string]string{}, used: map[string]bool{}}
	add := func(role anthropic.MessageParamRole, blocks ...anthropic.ContentBlockParamUnion) {
		if len(blocks) == 0 {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		if len(out) == 0 && role != anthropic.MessageParamRoleUser {
			out = append(out, anthropic.NewUserMessage(anthropic.NewTextBlock("(The beginning of the conversation is not shown.)")))
		}
		out = append(out, anthropic.MessageParam{Role: role, Content: blocks})
	}
	for _, m := range history {
		switch m.Role {
		case "assistant":
			add(anthropic.MessageParamRoleAssistant, answer(m, by, &known)...)
		case "tool":
			add(anthropic.MessageParamRoleUser, anthropic.ContentBlockParamUnion{OfToolResult: &anthropic.ToolResultBlockParam{ToolUseID: known.of(m.ToolCallID), Content: result(m)}})
		default:
			add(anthropic.MessageParamRoleUser, said(m)...)
		}
	}
	return out
}

// answer writes an assistant's message. The API refuses blocks of text that are empty, and wants
// its own reasoning back where it was.
func answer(m event.Message, by string, known *ids) []anthropic.ContentBlockParamUnion {
	var out []anthropic.ContentBlockParamUnion
	reasoning := m.Reasoning
	until := func(calls int) {
		for ; len(reasoning) > 0 && reasoning[0].Calls <= calls; reasoning = reasoning[1:] {
			if r := reasoning[0]; r.By == by {
				if b, ok := thought(r); ok {
					out = append(out, b)
				}
			}
		}
	}
	until(0)
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, anthropic.NewTextBlock(m.Content))
	}
	for i, c := range m.ToolCalls {
		until(i)
		name := c.Name
		if !word().MatchString(name) {
			name = "invalid_tool" // as a model may call one; its result says so
		}
		out = append(out, anthropic.NewToolUseBlock(known.add(c.ID), object(c.Args), name))
	}
	until(len(m.ToolCalls))
	return out
}

// word is how the API takes names of tools and ids of calls.
var word = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)

// ids are those of the calls of a history. Another service may have given some that the API does
// not take, or one twice.
type ids struct {
	as   map[string]string // by the id in the history, of its last call
	used map[string]bool
}

// add returns the id of a call.
func (i *ids) add(id string) string {
	is := id
	for n := len(i.used); i.used[is] || !word().MatchString(is); n++ {
		is = fmt.Sprintf("call_%d", n)
	}
	i.used[is], i.as[id] = true, is
	return is
}

// of returns the id of a result's call.
func (i *ids) of(id string) string { return i.as[id] }

// signature is the part of a block of reasoning that is not text.
type signature struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

func thought(r event.Reasoning) (b anthropic.ContentBlockParamUnion, ok bool) {
	var s signature
	switch {
	case json.Unmarshal(r.Data, &s) != nil:
		return b, false
	case s.Redacted != "":
		return anthropic.NewRedactedThinkingBlock(s.Redacted), true
	default:
		return anthropic.NewThinkingBlock(s.Signature, r.Text), s.Signature != ""
	}
}

// object returns a call's arguments; the API takes objects only.
func object(args json.RawMessage) any {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil || members == nil {
		return map[string]json.RawMessage{"arguments": args}
	}
	return args
}

func said(m event.Message) []anthropic.ContentBlockParamUnion {
	var out []anthropic.ContentBlockParamUnion
	for _, i := range m.Images {
		out = append(out, anthropic.ContentBlockParamUnion{OfImage: picture(i)})
	}
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, anthropic.NewTextBlock(m.Content))
	}
	return out
}

func result(m event.Message) []anthropic.ToolResultBlockParamContentUnion {
	var out []anthropic.ToolResultBlockParamContentUnion
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: m.Content}})
	}
	for _, i := range m.Images {
		out = append(out, anthropic.ToolResultBlockParamContentUnion{OfImage: picture(i)})
	}
	return out
}

func picture(i event.Image) *anthropic.ImageBlockParam {
	return &anthropic.ImageBlockParam{Source: anthropic.ImageBlockParamSourceUnion{OfBase64: &anthropic.Base64ImageSourceParam{
		Data: base64.StdEncoding.EncodeToString(i.Data), MediaType: anthropic.Base64ImageSourceMediaType(i.MimeType),
	}}}
}
