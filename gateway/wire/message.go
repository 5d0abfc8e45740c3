package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Limits of a message (C.2).
const (
	maxTopic = 300 // bytes
	maxEvent = 64  // bytes
	maxRef   = 64  // bytes
)

// errMessage says that a message is none of the protocol.
var errMessage = errors.New("invalid message")

// message is one message in Phoenix's terms. Refs are nil where there is none.
type message struct {
	joinRef *string
	ref     *string
	topic   string
	event   string
	payload []byte // JSON
}

// format is how a connection's messages look: the encoding, and the version of
// Phoenix's serializer.
type format struct {
	msgpack bool
	arrays  bool // vsn=2.0.0: [join_ref, ref, topic, event, payload]; else objects
}

const formats = 4

func (f format) index() int {
	i := 0
	if f.msgpack {
		i |= 1
	}
	if f.arrays {
		i |= 2
	}
	return i
}

// frameType is the type of WebSocket frames of an encoding.
func (f format) frameType() int {
	if f.msgpack {
		return websocket.BinaryMessage
	}
	return websocket.TextMessage
}

// toJSON returns what a frame holds as one strict JSON value.
func (f format) toJSON(data []byte) ([]byte, error) {
	if f.msgpack {
		return fromMsgpack(data)
	}
	if err := jsonrpc.Check(data); err != nil {
		return nil, err
	}
	return data, nil
}

// parse opens a message in JSON that has been checked.
func (f format) parse(data []byte) (m message, err error) {
	var fields [5]json.RawMessage
	if f.arrays {
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil || len(list) != len(fields) {
			return m, fmt.Errorf("%w: at vsn 2.0.0 it is an array of join_ref, ref, topic, event, payload", errMessage)
		}
		copy(fields[:], list)
	} else {
		o, err := jsonrpc.ParseObject(data)
		if err != nil {
			return m, fmt.Errorf("%w: it is an object of topic, event, payload, ref, join_ref", errMessage)
		}
		for i := range o.Len() {
			name, value := o.At(i)
			switch name {
			case "join_ref":
				fields[0] = value
			case "ref":
				fields[1] = value
			case "topic":
				fields[2] = value
			case "event":
				fields[3] = value
			case "payload":
				fields[4] = value
			default:
				return m, fmt.Errorf("%w: unknown member %.40q", errMessage, name)
			}
		}
	}
	if m.joinRef, err = reference(fields[0]); err != nil {
		return m, err
	}
	if m.ref, err = reference(fields[1]); err != nil {
		return m, err
	}
	var ok bool
	if m.topic, ok = jsonrpc.AsString(fields[2]); !ok || m.topic == "" || len(m.topic) > maxTopic {
		return m, fmt.Errorf("%w: topic is a string of at most %d bytes", errMessage, maxTopic)
	}
	if m.event, ok = jsonrpc.AsString(fields[3]); !ok || m.event == "" || len(m.event) > maxEvent {
		return m, fmt.Errorf("%w: event is a string of at most %d bytes", errMessage, maxEvent)
	}
	m.payload = fields[4]
	if len(m.payload) == 0 || string(m.payload) == "null" {
		m.payload = []byte("{}")
	}
	return m, nil
}

func reference(raw []byte) (*string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // no ref is no error
	}
	s, ok := jsonrpc.AsString(raw)
	if !ok || len(s) > maxRef {
		return nil, fmt.Errorf("%w: refs are strings of at most %d bytes, or null", errMessage, maxRef)
	}
	return &s, nil
}

// frame returns the message as a WebSocket frame, ready to be written to any
// number of connections of that format.
func (f format) frame(m message) []byte {
	body := f.body(m)
	if f.msgpack {
		body = appendMsgpack(make([]byte, 0, len(body)), body)
	}
	return newFrame(f.frameType(), body)
}

// body returns the message in JSON.
func (f format) body(m message) []byte {
	b := make([]byte, 0, len(m.payload)+len(m.topic)+len(m.event)+96)
	ref := func(s *string) {
		if s == nil {
			b = append(b, "null"...)
			return
		}
		b = jsonrpc.AppendString(b, *s)
	}
	if f.arrays {
		b = append(b, '[')
		ref(m.joinRef)
		b = append(b, ',')
		ref(m.ref)
		b = jsonrpc.AppendString(append(b, ','), m.topic)
		b = jsonrpc.AppendString(append(b, ','), m.event)
		b = append(append(b, ','), m.payload...)
		return append(b, ']')
	}
	b = append(b, `{"topic":`...)
	b = jsonrpc.AppendString(b, m.topic)
	b = jsonrpc.AppendString(append(b, `,"event":`...), m.event)
	b = append(append(b, `,"payload":`...), m.payload...)
	b = append(b, `,"ref":`...)
	ref(m.ref)
	b = append(b, `,"join_ref":`...)
	ref(m.joinRef)
	return append(b, '}')
}

// plain returns a value outside of any topic (auth_challenge, auth_ok, auth_fail)
// as a frame.
func (f format) plain(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if f.msgpack {
		body = appendMsgpack(nil, body)
	}
	return newFrame(f.frameType(), body), nil
}

// newFrame returns a whole, final, unmasked WebSocket frame (RFC 6455 §5.2).
// gorilla writes the same with one system call each; bytes that are ready can be
// shared, and written many at a time.
func newFrame(kind int, body []byte) []byte {
	dst := make([]byte, 0, len(body)+10)
	dst = append(dst, 0x80|byte(kind)) //nolint:gosec // an opcode
	switch n := len(body); {
	case n < 126:
		dst = append(dst, byte(n))
	case n < 1<<16:
		dst = append(dst, 126, byte(n>>8), byte(n)) //nolint:gosec // the bytes of n
	default:
		dst = append(dst, 127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) //nolint:gosec // the bytes of n
	}
	return append(dst, body...)
}

// closeFrame is a close frame; reasons are short and ASCII.
func closeFrame(code int, reason string) []byte {
	const limit = 123 // RFC 6455 §5.5
	if len(reason) > limit || !utf8.ValidString(reason) {
		reason = ""
	}
	return newFrame(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
}
