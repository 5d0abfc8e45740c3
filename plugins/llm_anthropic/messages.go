package llm_anthropic //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// messages writes a history as the API takes it: user and assistant alternate, the user is first,
// and the results of an answer's calls are one message. by is the provider and the model.
func messages(history []event.Message, by string) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	var known provider.CallIDs
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
			add(anthropic.MessageParamRoleUser, anthropic.ContentBlockParamUnion{OfToolResult: &anthropic.ToolResultBlockParam{ToolUseID: known.Of(m.ToolCallID), Content: result(m)}})
		default:
			add(anthropic.MessageParamRoleUser, said(m)...)
		}
	}
	return out
}

// answer writes an assistant's message. The API refuses blocks of text that are empty, and wants
// its own reasoning back where it was.
func answer(m event.Message, by string, known *provider.CallIDs) []anthropic.ContentBlockParamUnion {
	var out []anthropic.ContentBlockParamUnion
	provider.Answer(m, by, func(r event.Reasoning) {
		if b, ok := thought(r); ok {
			out = append(out, b)
		}
	}, func() {
		if strings.TrimSpace(m.Content) != "" {
			out = append(out, anthropic.NewTextBlock(m.Content))
		}
	}, func(c event.ToolCall) {
		out = append(out, anthropic.NewToolUseBlock(known.Add(c.ID), provider.Object(c.Args), provider.ToolName(c.Name)))
	})
	return out
}

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
