package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Everything that the command line prints as JSON goes through printJSON, printLine or
// plainJSON: it has the words of servers in it, and may be read on a terminal.

// printJSON writes v as JSON with a line for each member.
func printJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// printLine writes v as one line of JSON.
func printLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(plainJSON(out.Bytes()))
	return err
}

// plainJSON escapes what would do something to a terminal, such as control characters of
// eight bits and those that turn the direction of text. Its meaning stays the same: in
// JSON such characters can only be in strings, but for returns between values, which are
// left out. Bytes that are not UTF-8 become U+FFFD, as decoders read them.
func plainJSON(raw []byte) []byte {
	if !bytes.ContainsFunc(raw, acts) {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(raw)/8)
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		switch {
		case r == '\r':
		case !acts(r):
			out = append(out, raw[:n]...)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		raw = raw[n:]
	}
	return out
}

// acts reports whether a character does something to a terminal other than to be seen
// or to lay JSON out.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && (!unicode.IsPrint(r) || r == utf8.RuneError)
}
