package masked

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Known secrets are hidden however JSON, URLs and base64 spell them.
func TestKnownSecretsInOtherSpellings(t *testing.T) {
	const secret = "pä/ss \"wörd\" 42"
	quoted := func(s string) string {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	escaped := func(s string) string { // every character as \u
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		return b.String()
	}
	b64 := base64.StdEncoding.EncodeToString
	var percent strings.Builder
	for i := range len(secret) {
		fmt.Fprintf(&percent, "%%%02x", secret[i])
	}
	for name, text := range map[string]string{
		"as it is":                 secret,
		"a member":                 `{"x":` + quoted(secret) + `}`,
		"only ASCII":               `{"x":"p\u00e4/ss \"w\u00F6rd\" 42"}`,
		"an escaped slash":         `{"x":"pä\/ss \"wörd\" 42"}`,
		"every character":          `{"x":"` + escaped(secret) + `"}`,
		"a key":                    `{"` + escaped(secret) + `":1}`,
		"amidst text":              `{"x":"it is ` + escaped(secret) + `, really"}`,
		"in an array":              `[[1,"` + escaped(secret) + `"]]`,
		"JSON in a string":         quoted(`{"x":"` + escaped(secret) + `"}`),
		"JSON in JSON in a string": quoted(quoted(`{"x":"` + escaped(secret) + `"}`)),
		"text in JSON in a string": `{"t":` + quoted(`{"t":`+quoted("so: "+secret)+`}`) + `}`,
		"a fragment in text":       `the server said {"x":"` + escaped(secret) + `"} and left`,
		"escapes in text":          `the server said \"` + escaped(secret) + `\" and left`,
		"escapes in escapes":       strings.ReplaceAll(`it said \"`+escaped(secret)+`\"`, `\`, `\\`),
		"several documents":        `{"a":1}` + "\n" + `{"x":"` + escaped(secret) + `"}`,
		"not JSON in the end":      `{"x":"` + escaped(secret) + `",}`,
		"cut":                      `{"x":"` + escaped(secret)[:70],
		"in a query":               "https://h/p?q=" + url.QueryEscape(secret) + "&b=2",
		"in a path":                "https://h/" + url.PathEscape(secret) + "/x",
		"every byte percent":       "x=" + percent.String(),
		"percent in JSON":          `{"u":"https:\/\/h\/\u003fq=` + url.QueryEscape(secret) + `"}`,
		"JSON in a query":          "https://h/?q=" + url.QueryEscape(`{"x":"`+escaped(secret)+`"}`),
		"percent twice":            url.QueryEscape(url.QueryEscape(secret)),
		"base64":                   b64([]byte(secret)),
		"Basic":                    `{"h":"` + b64([]byte("user:"+secret)) + `"}`,
		"Basic of another user":    b64([]byte("us:" + secret)),
		"Basic of a third":         b64([]byte("me:" + secret + "x")),
		"base64 for URLs":          base64.URLEncoding.EncodeToString([]byte("user:" + secret)),
		"base64 without padding":   base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"base64 in a query":        "?a=" + url.QueryEscape(b64([]byte(secret))),
		"base64 in JSON":           `{"a":"` + strings.ReplaceAll(b64([]byte("xy:"+secret)), "/", `\/`) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var s Secrets
			s.Learn(secret)
			got := string(s.Append(nil, []byte(text)))
			if !strings.Contains(got, Mask) {
				t.Errorf("Append(%q) = %q, want the secret hidden", text, got)
			}
			if left := spelled(got, secret); left != "" {
				t.Errorf("Append(%q) = %q, which has the secret: %q", text, got, left)
			}
			if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
				t.Errorf("Append(%q) = %q, want JSON", text, got)
			}
		})
	}
}

// spelled returns the text in which a secret stands, when text is decoded in all ways
// that are promised; "" if there is none.
func spelled(text, secret string) string {
	todo, seen := []string{text}, map[string]bool{}
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			todo = append(todo, s)
		}
	}
	for len(todo) > 0 && len(seen) < 200 {
		s := todo[0]
		todo = todo[1:]
		if strings.Contains(s, secret) {
			return s
		}
		for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !strings.ContainsRune("+/-_=", r) && (r >= 128 || !nameByte(byte(r))) }) {
			for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				if b, err := enc.DecodeString(strings.TrimRight(word, "=")); err == nil && strings.Contains(string(b), secret) {
					return word
				}
			}
		}
		if u, err := url.PathUnescape(s); err == nil {
			add(u)
		}
		var v any
		if json.Unmarshal([]byte(s), &v) == nil {
			each(v, add)
		}
	}
	return ""
}

// each calls f for all strings of a document.
func each(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, x := range v {
			each(x, f)
		}
	case map[string]any:
		for k, x := range v {
			f(k)
			each(x, f)
		}
	}
}
