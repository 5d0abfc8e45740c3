package masked

import (
	"bytes"
	"strings"
)

// plain are words that appear in the place of secrets, and are not secrets.
var plain = map[string]bool{
	"to": true, "is": true, "and": true, "or": true, "for": true, "the": true, "a": true, "an": true, "flag": true, "option": true, "from": true, "with": true, "in": true, "as": true, "when": true, "if": true,
	"via": true, "must": true, "can": true, "cannot": true, "argument": true, "was": true, "not": true, "should": true, "on": true, "of": true, "by": true, "are": true, "has": true, "may": true, "will": true,
	"string": true, "str": true, "number": true, "int": true, "bool": true, "boolean": true, "any": true, "unknown": true, "undefined": true, "null": true, "none": true, "nil": true, "true": true, "false": true,
	"token": true, "tokens": true, "key": true, "password": true, "secret": true, "value": true, "auth": true, "authentication": true, "authorization": true, "scheme": true, "required": true, "optional": true,
	"error": true, "errors": true, "missing": true, "invalid": true, "expired": true, "header": true, "credentials": true, "access": true,
	"no": true, "yes": true, "off": true, "auto": true, "default": true, "empty": true, "unset": true, "eof": true, "fatal": true, "could": true, "unable": true, "failed": true, "failure": true, "denied": true,
	"incorrect": true, "wrong": true, "rejected": true, "revoked": true, "unauthorized": true, "forbidden": true,
}

// longestPlain is the maximum length of the words, with punctuation.
const longestPlain = 20

func isPlain(value []byte) bool {
	return len(value) <= longestPlain && plain[strings.ToLower(strings.TrimRight(string(value), ".,;:"))]
}

// said are values that switch something on or off, or mean none: they are not secrets,
// whatever their names. A passphrase may begin with such a word, so only a word alone
// counts.
var said = map[string]bool{"true": true, "false": true, "yes": true, "no": true, "on": true, "off": true, "none": true, "null": true, "nil": true, "undefined": true}

// longestSaid is the maximum length of said.
const longestSaid = len("undefined")

// reasons are the error texts of systems and libraries, in lower case. They follow the
// name of a file and a colon, as a value does: a file may be called token. Only whole ones
// are listed: a passphrase may begin with "too many" or "no such".
var reasons = func() (out [][]byte) {
	for _, r := range []string{
		"no such file or directory", "no such device", "no such process", "no such host", "no such secret", "no such user", "no such container", "permission denied", "operation not permitted", "operation not supported", "read-only file system", "is a directory", "not a directory", "not a regular file", "file exists", "file too large", "file name too long",
		"directory not empty", "text file busy", "device or resource busy", "resource temporarily unavailable", "resource busy", "invalid argument", "invalid cross-device link", "input/output error", "exec format error", "bad file descriptor",
		"too many open files", "too many levels of symbolic links", "too many links", "cannot open", "could not open", "unexpected eof", "unexpected end of ", "connection refused", "connection reset", "broken pipe", "cross-device link", "file already closed", "file does not exist", "command not found", "stale file handle", "disk quota exceeded",
	} {
		out = append(out, []byte(r))
	}
	return out
}()

// reason reports whether text begins with the reason of a failure.
func reason(text []byte) bool {
	for _, r := range reasons {
		if len(text) >= len(r) && bytes.EqualFold(text[:len(r)], r) {
			return r[len(r)-1] == ' ' || len(text) == len(r) || !nameByte(text[len(r)])
		}
	}
	return false
}

// position reports whether text, which follows the name of a file and a colon, begins
// with the number of a line.
func position(text []byte) bool {
	n := 0
	for n < len(text) && n < 8 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n > 0 && n < len(text) && text[n] == ':'
}
