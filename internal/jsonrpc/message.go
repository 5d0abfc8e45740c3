package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Error codes of JSON-RPC 2.0 §5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// ErrInvalid is wrapped by errors of messages that are JSON, but not JSON-RPC
// 2.0 message.
var ErrInvalid = errors.New("invalid JSON-RPC message")

// ErrBatch reports that the message is an array. MCP has batches in 2025-03-26
// only; [Batch] splits them.
var ErrBatch = fmt.Errorf("%w: batches are not supported", ErrInvalid)

// Error is a JSON-RPC error object. Raw, when set, is the object as its sender
// wrote it; yaya relays it, so that code and data of unknown errors survive.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage
	Raw     json.RawMessage
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (code %d)", e.Message, e.Code)
}

// Append appends the error object to dst.
func (e *Error) Append(dst []byte) []byte {
	if e.Raw != nil {
		return append(dst, e.Raw...)
	}
	dst = append(dst, `{"code":`...)
	dst = AppendInt(dst, int64(e.Code))
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}')
}

// ParseError parses a raw error object.
func ParseError(raw []byte) *Error {
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return &Error{Code: CodeInternal, Message: "the peer sent a malformed error", Raw: nil}
	}
	return &Error{Code: e.Code, Message: e.Message, Data: e.Data, Raw: raw}
}

// Message is one message. All byte slices alias the parsed input.
type Message struct {
	ID     []byte // raw string or number; nil in a notification
	Method string // "" in a response
	Params Object // opened at its first level; zero when absent
	Result Object // opened at its first level if it is an object; zero when absent
	Err    []byte // raw error object; nil when absent

	top    [6]Member
	fields [8]Member
}

// IsRequest reports whether m asks for an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether m is a call without an id.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether m answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" }

// CopyTo copies the message to other memory, so that m can be used for the next one. The bytes
// stay those that were parsed.
func (m *Message) CopyTo(to *Message) {
	*to = *m
	for _, o := range [...]*Object{&to.Params, &to.Result} {
		if n := len(o.members); n > 0 && &o.members[0] == &m.fields[0] {
			o.members = to.fields[:n:n]
		}
	}
}

var envelope = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// Parse scans data into m. On an error m holds the recognised fields, so that an
// answer can name the id; the error wraps [ErrSyntax] when the bytes are not JSON,
// and [ErrInvalid] when they are not a message.
func (m *Message) Parse(data []byte) error {
	*m = Message{}
	top, fields := m.top[:0], m.fields[:0]
	s := scanner{data: data}
	s.space()
	if s.pos < len(data) && data[s.pos] == '[' {
		return ErrBatch
	}
	s.body = &fields // a valid message has params or a result, never both
	if err := s.value(0, &top); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	var version bool
	var bad error
	invalid := func(format string, args ...any) {
		if bad == nil {
			bad = fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
		}
	}
	if first := bytes.TrimLeft(data, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		invalid("not an object")
	}
	for _, f := range top {
		key, val := data[f.keyStart:f.keyEnd], data[f.valStart:f.valEnd:f.valEnd]
		switch string(key) {
		case "jsonrpc":
			version = string(val) == `"2.0"`
		case "id":
			if val[0] == '"' || val[0] == '-' || (val[0] >= '0' && val[0] <= '9') {
				m.ID = val
			} else {
				invalid("id must be a string or a number")
			}
		case "method":
			name, ok := methodName(val)
			if !ok || name == "" {
				invalid("method must be a non-empty string")
			}
			m.Method = name
		case "params":
			if val[0] != '{' {
				invalid("params must be an object")
				continue
			}
			m.Params = Object{raw: val, base: f.valStart, members: fields}
		case "result":
			m.Result = Object{raw: val, base: f.valStart, members: fields}
		case "error":
			if val[0] != '{' {
				invalid("error must be an object")
				continue
			}
			m.Err = val
		default:
			// A reader that folds case or resolves escapes would see a different message.
			name := Unquote(key)
			for _, known := range envelope {
				if strings.EqualFold(name, known) {
					invalid("member %q is a variant of %q", name, known)
				}
			}
		}
	}
	switch {
	case bad != nil:
		return bad
	case !version:
		return fmt.Errorf(`%w: jsonrpc must be "2.0"`, ErrInvalid)
	case m.Method == "" && m.ID == nil && m.Err == nil:
		return fmt.Errorf("%w: neither a method nor an id", ErrInvalid)
	case m.Method != "" && (!m.Result.IsZero() || m.Err != nil):
		return fmt.Errorf("%w: a call with a result or an error", ErrInvalid)
	case m.Method == "" && m.Params.raw != nil:
		return fmt.Errorf("%w: a response with params", ErrInvalid)
	case m.Method == "" && m.Result.IsZero() == (m.Err == nil):
		return fmt.Errorf("%w: a response needs a result or an error, not both", ErrInvalid)
	}
	return nil
}

// methodName decodes a method without allocating for the frequent ones.
func methodName(raw []byte) (string, bool) {
	switch string(raw) {
	case `"tools/call"`:
		return "tools/call", true
	case `"tools/list"`:
		return "tools/list", true
	case `"notifications/progress"`:
		return "notifications/progress", true
	}
	return AsString(raw)
}

// Line returns a message as one line: line breaks, which in JSON can stand only
// between tokens, become spaces. A transport that ends messages with a line break
// must write only such lines, or nested content could be read as a separate
// message. The result shares msg's memory if there was none.
func Line(msg []byte) []byte {
	if bytes.IndexByte(msg, '\n') < 0 && bytes.IndexByte(msg, '\r') < 0 {
		return msg
	}
	line := bytes.Clone(msg)
	for i, c := range line {
		if c == '\n' || c == '\r' { // some readers end a line at either
			line[i] = ' '
		}
	}
	return line
}

// AppendRequest appends a request, or a notification when id is nil. Params is
// raw and may be nil.
func AppendRequest(dst, id []byte, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if id != nil {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id...)
	}
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendResult appends a response that carries a raw result.
func AppendResult(dst, id, result []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"result":`...)
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendError appends a response that carries an error; a nil id becomes null.
func AppendError(dst, id []byte, e *Error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, id...)
	}
	dst = append(dst, `,"error":`...)
	dst = e.Append(dst)
	return append(dst, '}')
}
