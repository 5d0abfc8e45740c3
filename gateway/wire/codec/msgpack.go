package codec

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Bounds of a value. They are below those of JSON: a map takes its memory when its
// header has been read, at every level.
const (
	maxDepth   = 64
	maxMembers = 10_000
)

// ErrMsgpack says that bytes are not one MessagePack value that JSON can express within
// the limits.
var ErrMsgpack = errors.New("invalid MessagePack")

func badMsgpack(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMsgpack, fmt.Sprintf(format, args...))
}

// fromMsgpack returns one MessagePack value as JSON, and fails when data is not
// exactly that. Both encodings so mean the same, and everything behind this
// function has but one to know. Nothing is allocated for what a header
// only declares; depth and members are bounded.
// bin becomes base64; extensions, NaN and infinities have no meaning in JSON and
// are refused.
func fromMsgpack(data []byte) ([]byte, error) {
	out, rest, err := appendValue(nil, data, 0)
	if err == nil && len(rest) != 0 {
		err = badMsgpack("%d bytes behind the value", len(rest))
	}
	return out, err
}

func appendValue(dst, b []byte, depth int) (out, rest []byte, err error) {
	if len(b) == 0 {
		return dst, b, badMsgpack("it ends early")
	}
	switch msgp.NextType(b) { //nolint:exhaustive // what is not named is refused
	case msgp.MapType:
		return appendMap(dst, b, depth+1)
	case msgp.ArrayType:
		return appendArray(dst, b, depth+1)
	case msgp.StrType:
		s, rest, err := msgp.ReadStringZC(b)
		if err != nil || !utf8.Valid(s) {
			return dst, b, badMsgpack("a string is cut short or not UTF-8")
		}
		return jsonrpc.AppendString(dst, string(s)), rest, nil
	case msgp.BinType:
		s, rest, err := msgp.ReadBytesZC(b)
		if err != nil {
			return dst, b, badMsgpack("bytes are cut short")
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, s)
		return append(dst, '"'), rest, nil
	case msgp.IntType:
		n, rest, err := msgp.ReadInt64Bytes(b)
		if err != nil {
			return dst, b, badMsgpack("an integer is cut short")
		}
		return strconv.AppendInt(dst, n, 10), rest, nil
	case msgp.UintType:
		n, rest, err := msgp.ReadUint64Bytes(b)
		if err != nil {
			return dst, b, badMsgpack("an integer is cut short")
		}
		return strconv.AppendUint(dst, n, 10), rest, nil
	case msgp.Float32Type:
		f, rest, err := msgp.ReadFloat32Bytes(b)
		return appendFloat(dst, float64(f), 32), rest, floatError(float64(f), err)
	case msgp.Float64Type:
		f, rest, err := msgp.ReadFloat64Bytes(b)
		return appendFloat(dst, f, 64), rest, floatError(f, err)
	case msgp.BoolType:
		v, rest, err := msgp.ReadBoolBytes(b)
		if err != nil {
			return dst, b, badMsgpack("a bool")
		}
		return strconv.AppendBool(dst, v), rest, nil
	case msgp.NilType:
		return append(dst, "null"...), b[1:], nil
	default:
		return dst, b, badMsgpack("byte 0x%02x starts no value that is used here", b[0])
	}
}

func floatError(f float64, err error) error {
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return badMsgpack("a number is cut short or not finite")
	}
	return nil
}

func appendFloat(dst []byte, f float64, bits int) []byte {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits)
}

func appendMap(dst, b []byte, depth int) ([]byte, []byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	switch {
	case err != nil:
		return dst, b, badMsgpack("a map is cut short")
	case depth > maxDepth:
		return dst, b, badMsgpack("nested deeper than %d", maxDepth)
	case n > maxMembers || uint64(n)*2 > uint64(len(b)): // a member has two bytes at least
		return dst, b, badMsgpack("a map declares %d members", n)
	}
	seen := make(map[string]struct{}, n)
	dst = append(dst, '{')
	for i := range n {
		key, rest, err := msgp.ReadStringZC(b)
		if err != nil || !utf8.Valid(key) {
			return dst, b, badMsgpack("a key is not a string, or not UTF-8")
		}
		if _, twice := seen[string(key)]; twice {
			return dst, b, badMsgpack("key %.40q is there twice", key)
		}
		seen[string(key)] = struct{}{}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonrpc.AppendString(dst, string(key)), ':')
		if dst, b, err = appendValue(dst, rest, depth); err != nil {
			return dst, b, err
		}
	}
	return append(dst, '}'), b, nil
}

func appendArray(dst, b []byte, depth int) ([]byte, []byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	switch {
	case err != nil:
		return dst, b, badMsgpack("an array is cut short")
	case depth > maxDepth:
		return dst, b, badMsgpack("nested deeper than %d", maxDepth)
	case uint64(n) > uint64(len(b)): // an element has a byte at least
		return dst, b, badMsgpack("an array declares %d elements", n)
	}
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, b, err = appendValue(dst, b, depth); err != nil {
			return dst, b, err
		}
	}
	return append(dst, ']'), b, nil
}

// appendMsgpack appends JSON, which has been checked or is our own, as
// MessagePack: members in their order, integers exact up to 64 bits, other numbers
// as float64.
func appendMsgpack(dst, json []byte) []byte {
	w := packer{dst: dst, src: json}
	w.value()
	return w.dst
}

type packer struct {
	dst, src []byte
	pos      int
}

func (w *packer) space() {
	for w.pos < len(w.src) && w.src[w.pos] <= ' ' {
		w.pos++
	}
}

// next reports whether c comes next, and steps over it.
func (w *packer) next(c byte) bool {
	w.space()
	if w.pos < len(w.src) && w.src[w.pos] == c {
		w.pos++
		return true
	}
	return false
}

func (w *packer) value() {
	w.space()
	switch c := w.src[w.pos]; c {
	case '{':
		w.container('}', 0x80, 0xde, func() {
			w.space()
			w.text()
			w.next(':')
			w.value()
		})
	case '[':
		w.container(']', 0x90, 0xdc, w.value)
	case '"':
		w.text()
	case 't':
		w.dst, w.pos = msgp.AppendBool(w.dst, true), w.pos+4
	case 'f':
		w.dst, w.pos = msgp.AppendBool(w.dst, false), w.pos+5
	case 'n':
		w.dst, w.pos = msgp.AppendNil(w.dst), w.pos+4
	default:
		w.number()
	}
}

// container writes elements behind a header that is known only when they are
// counted: short in most cases, and widened in the others.
func (w *packer) container(end, short, long byte, element func()) {
	w.pos++
	at, n := len(w.dst), 0
	w.dst = append(w.dst, 0)
	for !w.next(end) {
		if n > 0 {
			w.next(',')
		}
		element()
		n++
	}
	switch {
	case n <= 15:
		w.dst[at] = short | byte(n)
	case n <= math.MaxUint16:
		w.dst[at] = long
		w.dst = slices.Insert(w.dst, at+1, 0, 0)
		binary.BigEndian.PutUint16(w.dst[at+1:], uint16(n))
	default:
		w.dst[at] = long + 1
		w.dst = slices.Insert(w.dst, at+1, 0, 0, 0, 0)
		binary.BigEndian.PutUint32(w.dst[at+1:], uint32(n)) //nolint:gosec // fewer than there are bytes in a message
	}
}

func (w *packer) text() {
	start := w.pos + 1
	escaped := false
	for w.pos = start; w.src[w.pos] != '"'; w.pos++ {
		if w.src[w.pos] == '\\' {
			escaped = true
			w.pos++
		}
	}
	content := w.src[start:w.pos]
	w.pos++
	if escaped {
		w.dst = msgp.AppendString(w.dst, jsonrpc.Unquote(content))
		return
	}
	w.dst = msgp.AppendStringFromBytes(w.dst, content)
}

func (w *packer) number() {
	start := w.pos
	for w.pos < len(w.src) {
		switch w.src[w.pos] {
		case '-', '+', '.', 'e', 'E', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			w.pos++
			continue
		}
		break
	}
	text := string(w.src[start:w.pos])
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		w.dst = msgp.AppendInt64(w.dst, n)
	} else if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		w.dst = msgp.AppendUint64(w.dst, n)
	} else {
		f, _ := strconv.ParseFloat(text, 64) // out of range is the nearest there is
		w.dst = msgp.AppendFloat64(w.dst, f)
	}
}
