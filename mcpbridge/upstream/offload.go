package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// maxNativeContents is how many content items a truncated result keeps.
const maxNativeContents = 1000

// Truncated is the member of _meta that marks a truncated result.
type Truncated struct {
	Bytes     int    `json:"bytes"` // of the whole result
	Items     int    `json:"items"` // of its content
	KeptItems int    `json:"kept_items"`
	Structure bool   `json:"structured_content_dropped,omitempty"`
	URI       string `json:"uri,omitempty"` // of the whole result, "" if it could not be stored
}

// MetaTruncated is the key of [Truncated] in a result's _meta.
const MetaTruncated = "io.github.yaya-ai/truncated"

// bounded returns the result of a native call unchanged, unless it exceeds the limit in its
// server's entry. A larger result keeps its shape: as many items as fit, the head of the first
// one that does not, and a link to the whole result. Structured content that the tool's output
// schema promises stays, whatever its size: a client must reject a result without it.
func (t *remote) bounded(call tool.Call, r reply) (reply, error) {
	p, limit := t.p, t.p.cfg.Server.MaxResult
	raw := r.result.Raw()
	if limit == 0 || (len(raw) <= limit && bytes.Count(raw, []byte(`"type"`)) <= maxNativeContents) {
		return r, nil
	}
	var content []json.RawMessage
	if c := r.result.Get("content"); c != nil {
		if err := json.Unmarshal(c, &content); err != nil {
			return r, fmt.Errorf("the content of its result is malformed: %w", err)
		}
	}
	if len(raw) <= limit && len(content) <= maxNativeContents {
		return r, nil
	}
	cut := Truncated{Bytes: len(raw), Items: len(content)}
	note := "the rest could not be kept"
	if p.cfg.Artifacts != nil {
		a, err := p.cfg.Artifacts.Put(call, "application/json", raw)
		if err != nil {
			note = fmt.Sprintf("the rest could not be kept: %v", err)
		} else {
			cut.URI = relay.ArtifactURI(a.ID)
			note = "the whole result is the resource " + cut.URI
		}
	}
	room := limit / 2 // the rest is for added members and structured content
	var kept []json.RawMessage
	for _, item := range content {
		if len(kept) == maxNativeContents {
			break
		}
		if len(item) > room {
			if head := cutText(item, room); head != nil {
				kept = append(kept, head)
			}
			break
		}
		kept = append(kept, item)
		room -= len(item) + 1
	}
	cut.KeptItems = len(kept)
	mark, err := json.Marshal(map[string]string{"type": "text", "text": fmt.Sprintf("[truncated: the result has %d bytes in %d items, max_result_bytes in the configuration of server %q allows %d bytes; %s]", cut.Bytes, cut.Items, p.cfg.Server.Name, limit, note)})
	if err != nil {
		return r, err
	}
	kept = append(kept, mark)
	if cut.URI != "" {
		link, err := json.Marshal(map[string]any{"type": "resource_link", "uri": cut.URI, "name": "whole result", "mimeType": "application/json", "size": len(raw)})
		if err != nil {
			return r, err
		}
		kept = append(kept, link)
	}
	list, err := json.Marshal(kept)
	if err != nil {
		return r, err
	}
	edits := []jsonrpc.Edit{{Name: "content", Value: list}}
	if s := r.result.Get("structuredContent"); len(s) > limit/4 && len(t.spec.OutputSchema) == 0 {
		cut.Structure = true
		edits = append(edits, jsonrpc.Edit{Name: "structuredContent"})
	}
	mine, err := json.Marshal(cut)
	if err != nil {
		return r, err
	}
	meta := jsonrpc.Object{}
	if m := r.result.Get("_meta"); len(m) <= limit/8 {
		meta, _ = jsonrpc.ParseObject(m) // an unreadable one counts as absent
	}
	edits = append(edits, jsonrpc.Edit{Name: "_meta", Value: meta.Append(nil, jsonrpc.Edit{Name: MetaTruncated, Value: mine})})
	// Members that no specification names must not exceed the limit.
	for i := range r.result.Len() {
		name, value := r.result.At(i)
		switch name {
		case "content", "structuredContent", "_meta":
		default:
			if len(value) > limit/8 {
				edits = append(edits, jsonrpc.Edit{Name: name})
			}
		}
	}
	if r, err = r.edited(edits...); err != nil {
		return r, err
	}
	p.stats.cut.Add(1)
	if p.cfg.Cut != nil {
		p.cfg.Cut(call, cut)
	}
	return r, nil
}

// cutText returns a text item with as much of its text as fits; nil for an item that is not a
// text.
func cutText(item json.RawMessage, room int) json.RawMessage {
	obj, err := jsonrpc.ParseObject(item)
	if err != nil {
		return nil
	}
	text, ok := obj.String("text")
	kind, _ := obj.String("type")
	if !ok || kind != "text" {
		return nil
	}
	for n := min(len(text), room); n > 0; n /= 2 { // escapes are longer than their characters
		head := text[:n]
		for len(head) < len(text) && len(head) > 0 && !utf8.RuneStart(text[len(head)]) {
			head = head[:len(head)-1]
		}
		out := obj.Append(nil, jsonrpc.Edit{Name: "text", Value: jsonrpc.AppendString(nil, head)})
		if len(out) <= room {
			return out
		}
	}
	return nil
}
