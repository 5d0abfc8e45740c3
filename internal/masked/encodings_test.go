package masked

import (
	"encoding/base32"
	"encoding/base64"

	"encoding/json"
	"fmt"
	"html"
	"strings"
	"testing"
	"unicode/utf16"
)

// inLines breaks a text into lines.
func inLines(text string, width int, end string) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + end)
		text = text[width:]
	}
	return b.String() + text + end
}

// joined are the hexadecimal digits of each byte, in a format, with something between them.
func joined(v, format, between string) string {
	var all []string
	for i := range len(v) {
		all = append(all, fmt.Sprintf(format, v[i]))
	}
	return strings.Join(all, between)
}

// Secrets are hidden in the encodings that programs print of themselves: base64 in lines, as
// base64 and openssl write it, dumps in hexadecimal, HTML, base32, UTF-16, and JSON in JSON.
func TestSecretsInOtherEncodings(t *testing.T) {
	const secret = `Cn4ry+/"&<=%zQ8t\K7-wX2`
	quoted := func(s string) string {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	nested := func(s string, depth int) string {
		for range depth {
			s = quoted(s)
		}
		return s
	}
	var little, big, entities strings.Builder
	for _, u := range utf16.Encode([]rune(secret)) {
		little.Write([]byte{byte(u), byte(u >> 8)})
		big.Write([]byte{byte(u >> 8), byte(u)})
		fmt.Fprintf(&entities, "&#x%X;", u)
	}
	cases := map[string]string{
		"hex with colons":           "key=" + joined(secret, "%02x", ":"),
		"hex with colons, upper":    joined(secret, "%02X", ":"),
		"hex with spaces":           joined(secret, "%02x", " "),
		"hex of an array":           "{ " + joined(secret, "0x%02x", ", ") + " }",
		"hex of an array, upper":    joined(secret, "0x%02X", ", "),
		"hex of a packed array":     joined(secret, "0x%02x", ","),
		"hex escapes":               joined(secret, `\x%02x`, ""),
		"hex escapes in JSON":       quoted(joined(secret, `\x%02X`, "")),
		"HTML":                      "<b>" + html.EscapeString(secret) + "</b>",
		"HTML in JSON":              quoted("<b>" + html.EscapeString(secret) + "</b>"),
		"HTML in HTML":              html.EscapeString(html.EscapeString(secret)),
		"HTML by numbers":           entities.String(),
		"base32":                    base32.StdEncoding.EncodeToString([]byte(secret)),
		"base32 of more":            base32.StdEncoding.EncodeToString([]byte("abc" + secret + "xy")),
		"base32, lower":             strings.ToLower(base32.StdEncoding.EncodeToString([]byte(secret))),
		"UTF-16, little":            little.String(),
		"UTF-16, big":               big.String(),
		"JSON, three deep":          nested(secret, 3),
		"a result, three deep":      `{"content":[{"type":"text","text":` + quoted(nested(secret, 3)) + `}]}`,
		"escapes three deep in one": quoted("it said " + nested(secret, 3)),
	}
	for width, end := range map[int]string{64: "\n", 76: "\r\n", 60: "\n    "} {
		for before := 40; before < 60; before++ { // wherever the lines break
			text := inLines(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before)+secret+"more")), width, end)
			cases[fmt.Sprintf("base64 in lines of %d after %d", width, before)] = text
			cases[fmt.Sprintf("base64 in lines of %d after %d in JSON", width, before)] = quoted(text)
		}
	}
	var s Secrets
	s.Declare(secret)
	for name, text := range cases {
		for method, got := range map[string]string{"Append": string(s.Append(nil, []byte(text))), "Conceal": string(s.Conceal([]byte(text)))} {
			if left := leaked(got, secret); left != "" {
				t.Errorf("%s: %s(%q) = %q, want the secret hidden; %s has it", name, method, text, got, left)
			}
		}
		stream := s.Stream()
		var got strings.Builder
		for i := range len(text) {
			got.WriteString(stream.Next(text[i : i+1]))
		}
		got.WriteString(stream.End())
		if left := leaked(got.String(), secret); left != "" {
			t.Errorf("%s: a stream gives %q, want the secret hidden; %s has it", name, got.String(), left)
		}
	}
	for _, text := range []string{
		"a=1&b=2&amp;c=3 R&D &copy; &#x41;&#66;", strings.Repeat("QUJD", 16) + "\n" + strings.Repeat("REVG", 16) + "\n", `C:\xabc\x41`, "de:ad:be:ef:00:11", "0x01, 0x02", "C\x00n\x00",
	} {
		if got := s.ConcealString(text); got != text {
			t.Errorf("ConcealString(%q) = %q, want it unchanged", text, got)
		}
	}
}

// leaked tells in which encoding a text has a secret, "" if it has none.
func leaked(text, secret string) string {
	for range 6 {
		lines := strings.NewReplacer("\r", "", "\n", "", " ", "").Replace(text)
		for _, word := range strings.FieldsFunc(lines, func(r rune) bool { return r >= 128 || value64(byte(r)) < 0 }) {
			if b, err := base64.RawStdEncoding.DecodeString(word[:len(word)/4*4]); err == nil && strings.Contains(string(b), secret) {
				return "base64"
			}
			if b, err := base32.StdEncoding.DecodeString(strings.ToUpper(word[:len(word)/8*8])); err == nil && strings.Contains(string(b), secret[:15]) {
				return "base32"
			}
		}
		digits := strings.ToLower(strings.NewReplacer("0x", "", `\\x`, "", `\x`, "", ":", "", ",", "").Replace(lines))
		switch {
		case strings.Contains(text, secret):
			return "the text"
		case strings.Contains(html.UnescapeString(html.UnescapeString(text)), secret):
			return "HTML"
		case strings.Contains(strings.ReplaceAll(text, "\x00", ""), secret):
			return "UTF-16"
		case strings.Contains(digits, fmt.Sprintf("%x", secret)):
			return "hexadecimal"
		}
		var inner any
		if json.Unmarshal([]byte(text), &inner) != nil {
			return ""
		}
		var all strings.Builder
		each(inner, func(s string) { all.WriteString(s) })
		text = all.String()
	}
	return ""
}
