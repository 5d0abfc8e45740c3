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

// claimed returns the ids of our requests that something malformed names as an answer
// does: so much can be seen of it that a call need not wait for what has come already.
// It is no answer; the call only learns that there will be none.
func claimed(data []byte) (ids []int64) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var parts []json.RawMessage
		if json.Unmarshal(data, &parts) != nil { // as far as it can be read
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
		// An id that came back as text, or in a list, is meant for the one that we sent.
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
	add(probe.ID) // of two, the last one
	return ids
}

// malformed is the error of a call whose answer cannot be read.
func malformed(why error) error {
	return &oddError{fmt.Errorf("the server sent a malformed answer: %w", why)}
}

// odd is the error of a call whose answer can be read, and is not one of MCP.
func odd(format string, args ...any) error { return &oddError{fmt.Errorf(format, args...)} }

var (
	errIDType = errors.New("its id is not the number of the request")
	errNobody = errors.New("it answers no request that can be made out")
)

// shown is the beginning of a line that cannot be read, for people: without secrets,
// which are looked for before the line is cut where one may stand.
func (p *Provider) shown(line []byte) string {
	const (
		most   = 200
		looked = 64 << 10 // bytes; what is shown lies far from the end of that
	)
	text := color.ReplaceAllString(string(line[:min(len(line), looked)]), "")
	if p.cfg.Mask != nil {
		text = p.cfg.Mask(text)
	}
	return `"` + feature.Clean(text, most) + `"`
}
