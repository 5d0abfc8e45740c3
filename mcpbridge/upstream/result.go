package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxItems bounds the content items of a result that reach the agent loop; the rest is only
// counted.
const maxItems = 200

// content is one item of a tool result, of any type.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		URI      string  `json:"uri"`
		MimeType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// normalise converts a raw MCP result into the host's representation: text stays text, binary
// data becomes an artifact, links are named and never followed, and unknown items are shown as
// JSON.
func normalise(store *tool.Store, call tool.Call, raw json.RawMessage) (tool.Result, error) {
	var r struct {
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
		IsError           bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return tool.Fail(tool.ErrTool, "the server's result is malformed: %v", err), nil
	}
	res := tool.Result{OK: !r.IsError, Structured: r.StructuredContent}
	if r.IsError {
		res.ErrorKind = tool.ErrTool
	}
	binary := func(what, mimeType, data string) tool.Block {
		mimeType = feature.Clean(mimeType, 100)
		bytes, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return tool.Text(fmt.Sprintf("[%s of type %s that is not valid base64]", what, mimeType))
		}
		if store == nil {
			return tool.Text(fmt.Sprintf("[%s, %s, %d bytes, not kept]", what, mimeType, len(bytes)))
		}
		a, err := store.Put(call, mimeType, bytes)
		if err != nil {
			return tool.Text(fmt.Sprintf("[%s, %s, %d bytes, not kept: %v]", what, mimeType, len(bytes), err))
		}
		res.Artifacts = append(res.Artifacts, a)
		return tool.Text(fmt.Sprintf("[%s, %s, %d bytes, kept as artifact %s]", what, mimeType, len(bytes), a.ID))
	}
	for i, item := range r.Content {
		if i == maxItems {
			res.Display = append(res.Display, tool.Text(fmt.Sprintf("[truncated: %d more items]", len(r.Content)-i)))
			break
		}
		var c content
		if err := json.Unmarshal(item, &c); err != nil {
			res.Display = append(res.Display, tool.JSON(item))
			continue
		}
		switch {
		case c.Type == "text":
			res.Display = append(res.Display, tool.Text(c.Text))
		case c.Type == "image" || c.Type == "audio":
			res.Display = append(res.Display, binary(c.Type, c.MimeType, c.Data))
		case c.Type == "resource_link":
			res.Display = append(res.Display, tool.Text(fmt.Sprintf("[link to resource %q: %s]", feature.Clean(c.Name, 200), feature.Clean(c.URI, 2000))))
		case c.Type == "resource" && c.Resource != nil && c.Resource.Text != nil:
			res.Display = append(res.Display, tool.Text(*c.Resource.Text))
		case c.Type == "resource" && c.Resource != nil:
			res.Display = append(res.Display, binary("resource "+feature.Clean(c.Resource.URI, 200), c.Resource.MimeType, c.Resource.Blob))
		default:
			res.Display = append(res.Display, tool.JSON(item))
		}
	}
	if len(res.Display) > 0 {
		res.Brief = tool.Brief(cut.Text(res.Display[0].Content(), 400))
	}
	return res, nil
}

// ResourceResult converts the raw result of a resources/read into the host's representation, as
// normalise does that of a tool.
func ResourceResult(store *tool.Store, call tool.Call, raw json.RawMessage) (tool.Result, error) {
	var r struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return tool.Fail(tool.ErrTool, "the server's result is malformed: %v", err), nil
	}
	type item struct {
		Type     string          `json:"type"`
		Resource json.RawMessage `json:"resource"`
	}
	items := make([]item, 0, min(len(r.Contents), maxItems+1))
	for _, c := range r.Contents[:min(len(r.Contents), maxItems+1)] {
		items = append(items, item{"resource", c})
	}
	content, err := json.Marshal(map[string]any{"content": items})
	if err != nil {
		return tool.Result{}, err
	}
	res, err := normalise(store, call, content)
	if err == nil && len(r.Contents) == 0 {
		res.Display = []tool.Block{tool.Text("[the resource is empty]")}
	}
	return res, err
}

// PromptResult converts the raw result of a prompts/get into a message of a user. Its first line names
// the prompt and the server. Messages of other roles are quoted, and embedded resources are framed.
func PromptResult(store *tool.Store, call tool.Call, server, name string, raw json.RawMessage) (tool.Result, error) {
	var r struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return tool.Fail(tool.ErrTool, "the server's prompt is malformed: %v", err), nil
	}
	out := tool.Result{OK: true, Brief: "prompt"}
	for i, m := range r.Messages {
		if i == maxItems {
			out.Display = append(out.Display, tool.Text(fmt.Sprintf("[truncated: %d more messages]", len(r.Messages)-i)))
			break
		}
		content, err := json.Marshal(map[string]any{"content": []json.RawMessage{m.Content}})
		if err != nil {
			return tool.Fail(tool.ErrTool, "the server's prompt is malformed: %v", err), nil
		}
		said, err := normalise(store, call, content)
		if err != nil || !said.OK {
			return said, err
		}
		text := embedded(m.Content, said.Text())
		if m.Role != "user" {
			text = fmt.Sprintf("The %s: %q", feature.Clean(m.Role, 40), text)
		}
		out.Display, out.Artifacts = append(out.Display, tool.Text(text)), append(out.Artifacts, said.Artifacts...)
	}
	if len(out.Display) == 0 {
		return tool.Fail(tool.ErrTool, "the prompt is empty"), nil
	}
	from := fmt.Sprintf("The prompt %q of the MCP server %q:", cut.Text(name, 200), cut.Text(server, 200))
	out.Display = slices.Insert(out.Display, 0, tool.Text(from))
	return out, nil
}

// embedded returns the text of a prompt's message, in a frame if the message is the text of a resource.
func embedded(raw json.RawMessage, text string) string {
	var c content
	if json.Unmarshal(raw, &c) != nil || c.Type != "resource" || c.Resource == nil || c.Resource.Text == nil {
		return text
	}
	return tool.Framed(fmt.Sprintf("embedded resource %q", cut.Text(c.Resource.URI, 200)), "resource", text)
}

// progressOf reads a progress notification.
func progressOf(n note) (tool.Progress, bool) {
	if n.method != "notifications/progress" {
		return tool.Progress{}, false
	}
	var p struct {
		Progress float64  `json:"progress"`
		Total    *float64 `json:"total"`
		Message  string   `json:"message"`
	}
	if json.Unmarshal(n.params, &p) != nil {
		return tool.Progress{}, false
	}
	return tool.Progress{Progress: p.Progress, Total: p.Total, Message: feature.Clean(p.Message, 1024), Native: n.params}, true
}
