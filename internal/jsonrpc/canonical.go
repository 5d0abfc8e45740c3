package jsonrpc

import (
	"bytes"
	"encoding/json"
)

// Canonical writes JSON with sorted members and without blanks. Numbers stay as
// they were written: 1 and 1.0 may mean different things to a tool.
func Canonical(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
