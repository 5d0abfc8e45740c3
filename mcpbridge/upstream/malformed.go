package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// claimed returns the ids of our requests that a malformed answer names, if that much is
// readable, so that their calls need not wait any further. It does not count as an answer; the
// calls only learn that none will come.
func claimed(data []byte) (ids []int64) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var parts []json.RawMessage
		if json.Unmarshal(data, &parts) != nil { // as far as readable
			parts = []json.RawMessage{bytes.TrimLeft(data, "[ \t\r\n")}
		}
		for _, part := range parts {
			if part = bytes.TrimSpace(part); len(part) > 0 && part[0] != '[' {
				ids = append(ids, claimed(part)...)
			}
		}
		return ids
	}
	add := func(raw []byte) {
		// An id that came back as a string, or in a list, stands for the number that we sent.
		id, err := strconv.ParseInt(string(bytes.Trim(raw, "\"[] \t")), 10, 64)
		if err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	id, call := jsonrpc.Glimpse(data, data)
	if call {
		return nil
	}
	add(id)
	var probe struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
	}
	if json.Unmarshal(data, &probe) != nil {
		return ids
	}
	if probe.Method != nil {
		return nil
	}
	add(probe.ID) // of duplicates, the last one
	return ids
}

// malformed returns the error of a call whose answer cannot be parsed.
func malformed(why error) error {
	return &oddError{fmt.Errorf("the server sent a malformed answer: %w", why)}
}

// odd returns the error of a call whose answer can be parsed but is not MCP.
func odd(format string, args ...any) error { return &oddError{fmt.Errorf(format, args...)} }

var (
	errIDType = errors.New("its id is not the number of the request")
	errNobody = errors.New("it answers no recognizable request")
)

// maxShownLine is how much of an unreadable line is examined, in bytes: what is shown of it ends
// far before.
const maxShownLine = 64 << 10

// shown returns the beginning of an unreadable line for people, without secrets. Secrets are
// removed before the line is cut, since the cut may split one.
func (p *Provider) shown(line []byte) string {
	const most = 200
	text := color().ReplaceAllString(string(line[:min(len(line), maxShownLine)]), "")
	if p.cfg.Mask != nil {
		text = p.cfg.Mask(text)
	}
	return `"` + feature.Clean(text, most) + `"`
}
