package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Limits of a message.
const (
	maxTopic = 300 // bytes
	maxEvent = 64  // bytes
	maxRef   = 64  // bytes
)

// ErrMessage says that bytes are not a message of the protocol.
var ErrMessage = errors.New("invalid message")

// Message is one message in Phoenix's terms. Refs are nil where there is none.
type Message struct {
	JoinRef *string
	Ref     *string
	Topic   string
	Event   string
	Payload []byte // JSON
}

// Format is how a connection's messages look: the encoding, and the version of
// Phoenix's serializer.
type Format struct {
	Msgpack bool
	Arrays  bool // vsn=2.0.0: [join_ref, ref, topic, event, payload]; else objects
}

const Formats = 4

func (f Format) Index() int {
	i := 0
	if f.Msgpack {
		i |= 1
	}
	if f.Arrays {
		i |= 2
	}
	return i
}

// FrameType is the type of WebSocket frames of an encoding.
func (f Format) FrameType() int {
	if f.Msgpack {
		return websocket.BinaryMessage
	}
	return websocket.TextMessage
}

// ToJSON returns what a frame holds as one strict JSON value.
func (f Format) ToJSON(data []byte) ([]byte, error) {
	if f.Msgpack {
		return fromMsgpack(data)
	}
	if err := jsonrpc.Check(data); err != nil {
		return nil, err
	}
	return data, nil
}

// Parse opens a message in JSON that has been checked.
func (f Format) Parse(data []byte) (m Message, err error) {
	var fields [5]json.RawMessage
	if f.Arrays {
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil || len(list) != len(fields) {
			return m, fmt.Errorf("%w: at vsn 2.0.0 it is an array of join_ref, ref, topic, event, payload", ErrMessage)
		}
		copy(fields[:], list)
	} else {
		o, err := jsonrpc.ParseObject(data)
		if err != nil {
			return m, fmt.Errorf("%w: it is an object of topic, event, payload, ref, join_ref", ErrMessage)
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
				return m, fmt.Errorf("%w: unknown member %.40q", ErrMessage, name)
			}
		}
	}
	if m.JoinRef, err = reference(fields[0]); err != nil {
		return m, err
	}
	if m.Ref, err = reference(fields[1]); err != nil {
		return m, err
	}
	var ok bool
	if m.Topic, ok = jsonrpc.AsString(fields[2]); !ok || m.Topic == "" || len(m.Topic) > maxTopic {
		return m, fmt.Errorf("%w: topic is a string of at most %d bytes", ErrMessage, maxTopic)
	}
	if m.Event, ok = jsonrpc.AsString(fields[3]); !ok || m.Event == "" || len(m.Event) > maxEvent {
		return m, fmt.Errorf("%w: event is a string of at most %d bytes", ErrMessage, maxEvent)
	}
	m.Payload = fields[4]
	if len(m.Payload) == 0 || string(m.Payload) == "null" {
		m.Payload = []byte("{}")
	}
	return m, nil
}

func reference(raw []byte) (*string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // no ref is no error
	}
	s, ok := jsonrpc.AsString(raw)
	if !ok || len(s) > maxRef {
		return nil, fmt.Errorf("%w: refs are strings of at most %d bytes, or null", ErrMessage, maxRef)
	}
	return &s, nil
}

// Frame returns the message as a WebSocket frame, ready to be written to any
// number of connections of that format.
func (f Format) Frame(m Message) []byte { return NewFrame(f.FrameType(), f.Encode(f.Body(m))) }

// Encode returns JSON, which has been checked or is our own, in the encoding.
func (f Format) Encode(json []byte) []byte {
	if !f.Msgpack {
		return json
	}
	return appendMsgpack(make([]byte, 0, len(json)), json)
}

// Body returns the message in JSON.
func (f Format) Body(m Message) []byte {
	b := make([]byte, 0, len(m.Payload)+len(m.Topic)+len(m.Event)+96)
	ref := func(s *string) {
		if s == nil {
			b = append(b, "null"...)
			return
		}
		b = jsonrpc.AppendString(b, *s)
	}
	if f.Arrays {
		b = append(b, '[')
		ref(m.JoinRef)
		b = append(b, ',')
		ref(m.Ref)
		b = jsonrpc.AppendString(append(b, ','), m.Topic)
		b = jsonrpc.AppendString(append(b, ','), m.Event)
		b = append(append(b, ','), m.Payload...)
		return append(b, ']')
	}
	b = append(b, `{"topic":`...)
	b = jsonrpc.AppendString(b, m.Topic)
	b = jsonrpc.AppendString(append(b, `,"event":`...), m.Event)
	b = append(append(b, `,"payload":`...), m.Payload...)
	b = append(b, `,"ref":`...)
	ref(m.Ref)
	b = append(b, `,"join_ref":`...)
	ref(m.JoinRef)
	return append(b, '}')
}

// Plain returns a value outside any topic (auth_challenge, auth_ok, auth_fail)
// as a frame.
func (f Format) Plain(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return NewFrame(f.FrameType(), f.Encode(body)), nil
}

// NewFrame returns a whole, final, unmasked WebSocket frame (RFC 6455 §5.2).
// gorilla writes the same with one system call each; bytes that are ready can be
// shared, and written many at a time.
func NewFrame(kind int, body []byte) []byte {
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

// CloseFrame is a close frame; reasons are short and ASCII.
func CloseFrame(code int, reason string) []byte {
	const limit = 123 // RFC 6455 §5.5
	if len(reason) > limit || !utf8.ValidString(reason) {
		reason = ""
	}
	return NewFrame(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
}
