package fastpath

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
)

const (
	maxHead = 4 << 10 // bytes; a longer head is for net/http
	// maxDigits of Content-Length: what is larger is for net/http.
	maxDigits = 10
	// kept is how many heads of a connection are recognized. Modern MCP clients name the
	// method and the tool in theirs.
	kept = 4
)

// head is a head of requests that has been checked.
type head struct {
	before, after []byte // the digits of Content-Length; after ends the head
	parsed        *http.Request
	handler       http.Handler
}

// match reports whether b begins with the head, how long it is with its digits, and which
// length it announces.
func (h *head) match(b []byte) (size int, length int64, ok bool) {
	if !bytes.HasPrefix(b, h.before) {
		return 0, 0, false
	}
	length, digits, ok := number(b[len(h.before):])
	size = len(h.before) + digits
	if !ok || !bytes.HasPrefix(b[size:], h.after) {
		return 0, 0, false
	}
	return size + len(h.after), length, true
}

// number reads the digits that b begins with, as there is one way to write a length.
func number(b []byte) (n int64, digits int, ok bool) {
	for digits < len(b) && '0' <= b[digits] && b[digits] <= '9' {
		if digits == maxDigits {
			return 0, 0, false
		}
		n = 10*n + int64(b[digits]-'0')
		digits++
	}
	return n, digits, digits == 1 || (digits > 1 && b[0] != '0')
}

// verdict says what to do about the bytes that have arrived.
type verdict int

const (
	incomplete verdict = iota // more may make it a head
	plain
	other // net/http decides
)

// method is how each request of the fast path begins.
const method = "POST /"

// examine looks for a plain head at the beginning of b, whose length it returns.
func examine(b []byte) (size int, v verdict) {
	if n := min(len(b), len(method)); string(b[:n]) != method[:n] {
		return 0, other
	}
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		// A newline alone can end a head, too, and then nothing may follow it.
		for i, c := range b {
			if c == '\n' && (i == 0 || b[i-1] != '\r') || c >= 0x7f || c < ' ' && c != '\r' && c != '\n' && c != '\t' {
				return 0, other
			}
		}
		if len(b) >= maxHead {
			return 0, other
		}
		return 0, incomplete
	}
	size = end + 4
	if size > maxHead || !plainHead(b[:end]) {
		return 0, other
	}
	return size, plain
}

// plainHead reports whether the lines of a head, without the empty one, are such that everybody
// reads them in the same way.
func plainHead(b []byte) bool {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	target, ok := bytes.CutPrefix(line, []byte("POST "))
	target, version := bytes.CutSuffix(target, []byte(" HTTP/1.1"))
	if !ok || !version || len(target) == 0 || target[0] != '/' || !each(target, inPath) {
		return false
	}
	var names [32]string
	n, host, length := 0, false, false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		raw, value, found := bytes.Cut(line, []byte(":"))
		if !found || len(raw) == 0 || !each(raw, inName) || !each(value, inValue) || n == len(names) {
			return false
		}
		name := strings.ToLower(string(raw))
		for _, seen := range names[:n] {
			if seen == name {
				return false
			}
		}
		names[n] = name
		n++
		value = bytes.Trim(value, " \t")
		switch name {
		case "host":
			host = len(value) > 0 && each(value, inHost)
			if !host {
				return false
			}
		case "content-length":
			_, digits, ok := number(value)
			if length = ok && digits == len(value); !length {
				return false
			}
		case "connection":
			if !strings.EqualFold(string(value), "keep-alive") {
				return false
			}
		case "transfer-encoding", "expect", "upgrade", "trailer", "te", "proxy-connection", "http2-settings":
			return false
		}
	}
	return host && length
}

func each(b []byte, is func(byte) bool) bool {
	for _, c := range b {
		if !is(c) {
			return false
		}
	}
	return true
}

func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

func inPath(c byte) bool { return inName(c) || c == '/' || c == '.' || c == '~' }

func inHost(c byte) bool { return inName(c) || c == '.' || c == ':' || c == '[' || c == ']' }

func inValue(c byte) bool { return ' ' <= c && c < 0x7f || c == '\t' }

// parse has net/http parse a plain head, and splits it at its length. It returns nil if
// net/http does not agree that it is plain.
func parse(b []byte) *head {
	r, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(b), len(b)))
	if err != nil || r.ContentLength < 0 || len(r.TransferEncoding) > 0 || r.Close {
		return nil
	}
	r.Body = http.NoBody
	r.Header.Del("Content-Length") // it is another with each request
	at := lengthAt(b)
	_, digits, ok := number(b[at:])
	if !ok {
		return nil
	}
	own := bytes.Clone(b)
	return &head{before: own[:at:at], after: own[at+digits:], parsed: r}
}

// lengthAt returns where the digits of Content-Length begin in a plain head.
func lengthAt(b []byte) (at int) {
	const name = "content-length:"
	for {
		at += bytes.Index(b[at:], []byte("\r\n")) + 2 // there is one: the head is plain
		if len(b)-at > len(name) && strings.EqualFold(string(b[at:at+len(name)]), name) {
			at += len(name)
			for b[at] == ' ' || b[at] == '\t' {
				at++
			}
			return at
		}
	}
}

// heads are the heads that a connection has sent, the one seen last first.
type heads struct {
	all [kept]*head
}

// match finds the head that b begins with.
func (h *heads) match(b []byte) (found *head, size int, length int64) {
	for i, x := range h.all {
		if x == nil {
			return nil, 0, 0
		}
		if size, length, ok := x.match(b); ok {
			copy(h.all[1:i+1], h.all[:i])
			h.all[0] = x
			return x, size, length
		}
	}
	return nil, 0, 0
}

func (h *heads) add(x *head) {
	copy(h.all[1:], h.all[:kept-1])
	h.all[0] = x
}
