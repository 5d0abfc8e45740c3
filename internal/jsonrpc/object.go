package jsonrpc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Object is a JSON object opened at its first level: the raw bytes and where
// its members lie. Its methods never change the bytes.
type Object struct {
	raw     []byte
	base    int // offset of raw inside the bytes that the members count from
	members []Member
}

// ParseObject scans raw strictly and opens it. It fails when raw is not one
// JSON object.
func ParseObject(raw []byte) (Object, error) {
	members := make([]Member, 0, 8)
	s := scanner{data: raw}
	s.space()
	if s.pos >= len(raw) || raw[s.pos] != '{' {
		return Object{}, fmt.Errorf("%w: not an object", ErrSyntax)
	}
	if err := s.value(0, &members); err != nil {
		return Object{}, err
	}
	if err := s.end(); err != nil {
		return Object{}, err
	}
	return Object{raw: raw, members: members}, nil
}

// Raw returns the whole object.
func (o Object) Raw() []byte { return o.raw }

// IsZero reports whether the object has no bytes at all.
func (o Object) IsZero() bool { return o.raw == nil }

// IsObject reports whether the bytes are an object. A result may be any value.
func (o Object) IsObject() bool { return len(o.raw) > 0 && o.raw[0] == '{' }

// Len returns the number of members.
func (o Object) Len() int { return len(o.members) }

// At returns the name and the raw value of member i, in document order.
func (o Object) At(i int) (name string, value []byte) {
	m := o.members[i]
	return Unquote(o.slice(m.keyStart, m.keyEnd)), o.slice(m.valStart, m.valEnd)
}

// Key returns the name of member i. It aliases the object unless the name has escapes.
func (o Object) Key(i int) []byte {
	key := o.slice(o.members[i].keyStart, o.members[i].keyEnd)
	if bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	return []byte(Unquote(key))
}

func (o Object) slice(start, end int) []byte {
	return o.raw[start-o.base : end-o.base : end-o.base]
}

// named reports whether a key, as it is written, has that name.
func named(key []byte, name string) bool {
	return string(key) == name || len(key) > len(name) && bytes.IndexByte(key, '\\') >= 0 && Unquote(key) == name
}

func (o Object) find(name string) (Member, bool) {
	for _, m := range o.members {
		key := o.slice(m.keyStart, m.keyEnd)
		if named(key, name) {
			return m, true
		}
	}
	return Member{}, false
}

// Get returns the raw value of a member, nil when there is none.
func (o Object) Get(name string) []byte {
	m, ok := o.find(name)
	if !ok {
		return nil
	}
	return o.slice(m.valStart, m.valEnd)
}

// Variant returns the name of a member that differs from one of known in case only,
// or in how it is escaped: some readers would confuse the two.
func (o Object) Variant(known ...string) (name, of string) {
	for _, m := range o.members {
		key := o.slice(m.keyStart, m.keyEnd)
		for _, k := range known {
			if string(key) == k {
				break
			}
			if len(key) == len(k) && bytes.EqualFold(key, []byte(k)) {
				return string(key), k
			}
			if bytes.IndexByte(key, '\\') >= 0 && strings.EqualFold(Unquote(key), k) {
				return string(key), k
			}
		}
	}
	return "", ""
}

// String returns the value of a member that is a string.
func (o Object) String(name string) (string, bool) {
	return AsString(o.Get(name))
}

// AsString decodes a raw JSON string that a scan has accepted.
func AsString(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return Unquote(raw[1 : len(raw)-1]), true
}

// Edit is a change of one member: a new raw value, or its removal when Value is
// nil.
type Edit struct {
	Name  string
	Value []byte
}

// Append appends the object with edits applied to dst. Members keep their order
// and every byte that no edit names; a member that is new comes last.
func (o Object) Append(dst []byte, edits ...Edit) []byte {
	dst = append(dst, '{')
	first := true
	for _, m := range o.members {
		value := o.slice(m.valStart, m.valEnd)
		key := o.slice(m.keyStart, m.keyEnd)
		edited := false
		for _, e := range edits {
			if named(key, e.Name) {
				value, edited = e.Value, true
				break
			}
		}
		if edited && value == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, '"')
		dst = append(dst, key...)
		dst = append(dst, '"', ':')
		dst = append(dst, value...)
	}
	for _, e := range edits {
		if e.Value == nil {
			continue
		}
		if _, ok := o.find(e.Name); ok {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = AppendString(dst, e.Name)
		dst = append(dst, ':')
		dst = append(dst, e.Value...)
	}
	return append(dst, '}')
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20 || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[r&15])
		case r < 0x80:
			dst = append(dst, byte(r))
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}

// AppendInt appends n in decimal.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
