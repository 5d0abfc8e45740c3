package masked

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestSecretsAreHidden(t *testing.T) {
	var s Secrets
	s.Learn("hunter2hunter2", "line one\nline \"two\"", "short", "")
	for name, c := range map[string]struct{ text, want string }{
		"nothing":              {`{"path":"/tmp/x","n":5}`, `{"path":"/tmp/x","n":5}`},
		"a known value":        {`the value is hunter2hunter2.`, `the value is ****.`},
		"known, escaped":       {`{"text":"line one\nline \"two\" end"}`, `{"text":"**** end"}`},
		"cut off at the end":   {`it is hunter2hunt`, `it is ****`},
		"too short":            {`short`, `short`},
		"a member":             {`{"token":"abc","user":"eve"}`, `{"token":"****","user":"eve"}`},
		"with spaces":          {`{"api_key" : "a\"b" , "x":1}`, `{"api_key" : "****" , "x":1}`},
		"ends in a backslash":  {`{"password":"a\\","x":"y"}`, `{"password":"****","x":"y"}`},
		"a number":             {`{"password":12345,"x":1}`, `{"password":"****","x":1}`},
		"empty":                {`{"token":"","x":1}`, `{"token":"","x":1}`},
		"null":                 {`{"token":null}`, `{"token":null}`},
		"an object":            {`{"secret":{"password":"p"}}`, `{"secret":{"password":"****"}}`},
		"camel case":           {`{"accessToken":"abc","maxTokens":5}`, `{"accessToken":"****","maxTokens":5}`},
		"JSON in a string":     {`{"text":"{\"api_key\": \"abc\", \"n\": 1}"}`, `{"text":"{\"api_key\": \"****\", \"n\": 1}"}`},
		"number in a string":   {`{"text":"{\"secret\": 5, \"n\": 1}"}`, `{"text":"{\"secret\": \"****\", \"n\": 1}"}`},
		"twice in a string":    {`"{\\\"password\\\":\\\"p\\\",\\\"a\\\":\\\"b\\\"}"`, `"{\\\"password\\\":\\\"****\\\",\\\"a\\\":\\\"b\\\"}"`},
		"an env file":          {`{"text":"A=1\nGITHUB_TOKEN=ghp_1\nPGPASSWORD=x y\n"}`, `{"text":"A=1\nGITHUB_TOKEN=****\nPGPASSWORD=****\n"}`},
		"a query":              {`https://h/p?a=1&token=abc&b=2`, `https://h/p?a=1&token=****&b=2`},
		"a header":             {`X-Api-Key: abc`, `X-Api-Key: ****`},
		"a reference":          {`{"token":"${GITHUB_TOKEN}"}`, `{"token":"${GITHUB_TOKEN}"}`},
		"bearer":               {`curl -H 'Authentication: Bearer abc123abc'`, `curl -H 'Authentication: Bearer ****'`},
		"prose about bearers":  {`the bearer arrives`, `the bearer arrives`},
		"unterminated, cut":    {`{"password":"abc`, `{"password":"****`},
		"an unterminated name": {`token`, `token`},
		"separator first":      {`:=`, `:=`},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(s.Append(nil, []byte(c.text)))
			if got != c.want {
				t.Errorf("Append(%q) = %q, want %q", c.text, got, c.want)
			}
			if json.Valid([]byte(c.text)) && !json.Valid([]byte(got)) {
				t.Errorf("%q is not JSON, what it was made of is", got)
			}
		})
	}
}

func TestSecretsStayKnown(t *testing.T) {
	var s Secrets
	s.Learn("first-secret-value")
	s.Learn("second-secret-value")
	if got, want := s.String("first-secret-value second-secret-value"), "**** ****"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	var more []string
	for i := range maxValues {
		more = append(more, "value-"+strings.Repeat("x", 10)+string(rune('a'+i%26))+strings.Repeat("y", i/26+1))
	}
	s.Learn(more...)
	if len(s.order) > maxValues || len(s.known) > maxValues {
		t.Errorf("%d values are kept, want at most %d", len(s.order), maxValues)
	}
}

// FuzzSpellings masks documents that contain a secret in any spelling, and looks
// for it in every string of the result.
func FuzzSpellings(f *testing.F) {
	f.Add("pä/ss \"wörd\" 42", `{"a":["x @ y",{"@":1}]}`, []byte{0})
	f.Add("a known secret", `{"a":"@"}`, []byte{1, 2, 3})
	f.Add("C:\\temp\\new%41", `text {"a":"@"} and @`, []byte{7, 255, 1})
	f.Add("😀 secret 😀", `"@"`, []byte{3, 1, 4, 1, 5})
	f.Add(`","b":"\u0041`, `{"a":"@","b":"c"}`, []byte{2})
	f.Add("00000000", "\x0000001@", []byte{2})
	f.Fuzz(func(t *testing.T, secret, doc string, how []byte) {
		if len(secret) < Shortest || len(secret) > 64 || len(doc) > 1<<10 || len(how) == 0 || len(how) > 64 || !utf8.ValidString(secret) || !utf8.ValidString(doc) || strings.Contains(Mask, secret) || Is(secret) || strings.ContainsRune(doc, '*') {
			return
		}
		if strings.Contains(strings.ReplaceAll(doc, "@", Mask), secret) || spelled(strings.ReplaceAll(doc, "@", Mask), secret) != "" {
			return
		}
		nested := func(text string) string { // JSON in a string of JSON
			for range int(how[0]) % 3 {
				raw, err := json.Marshal(map[string]string{"t": text})
				if err != nil {
					t.Fatal(err)
				}
				text = string(raw)
			}
			return text
		}
		// An escape of the document can read as the secret, too: a zero byte before digits.
		if spelledIn(nested(strings.ReplaceAll(doc, "@", Mask)), secret) != "" {
			return
		}
		text := nested(strings.ReplaceAll(doc, "@", spell(secret, how)))
		if !json.Valid([]byte(text)) || strings.IndexByte(`{["`, strings.TrimLeft(text, " \t\r\n")[0]) < 0 { // a number alone is text
			return
		}
		var s Secrets
		s.Learn(secret)
		got := s.Append(nil, []byte(text))
		if !json.Valid(got) {
			t.Fatalf("%q became %q, which is not JSON", text, got)
		}
		if left := spelledIn(string(got), secret); left != "" {
			t.Errorf("%q became %q, in which %q has the secret %q", text, got, left, secret)
		}
	})
}

// spelledIn is spelled for the strings of a document; "" for what is not JSON.
func spelledIn(doc, secret string) (left string) {
	var v any
	if json.Unmarshal([]byte(doc), &v) != nil {
		return ""
	}
	each(v, func(x string) { left = cmp.Or(left, spelled(x, secret)) })
	return left
}

// spell writes text as it may stand in a string of JSON: how says how, by character.
func spell(text string, how []byte) string {
	var b strings.Builder
	for i, r := range []rune(text) {
		h := how[i%len(how)]
		switch {
		case h%3 == 0 && r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04X`, high, low)
		case h%3 == 0:
			fmt.Fprintf(&b, `\u%04x`, r)
		case h%3 == 1 && r == '/':
			b.WriteString(`\/`)
		default:
			raw, err := json.Marshal(string(r))
			if err != nil {
				panic(err)
			}
			b.Write(raw[1 : len(raw)-1])
		}
	}
	return b.String()
}

func FuzzAppend(f *testing.F) {
	for _, seed := range []string{`{"token":"a\\\"b"}`, `"{\"password\":\"x\"}"`, `token='`, `password=\`, `{"secret":-1e5}`, "Bearer 12345678"} {
		f.Add([]byte(seed))
	}
	var s Secrets
	s.Learn("a known secret")
	f.Fuzz(func(t *testing.T, text []byte) {
		got := s.Append(nil, text)
		if json.Valid(text) && !json.Valid(got) {
			t.Errorf("%q became %q, which is not JSON", text, got)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	var s Secrets
	for i := range 30 {
		s.Learn(strings.Repeat(string(rune('a'+i%26)), 3) + "-secret-" + strings.Repeat("0", i))
	}
	text := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("ordinary text of a result, with a key: value. ", 20) + `"}],"isError":false}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = s.Append(dst[:0], text)
	}
}

// Values that stand in ordinary text, and in yaya's own, are told from those that
// nobody writes by chance.
func TestOrdinaryValues(t *testing.T) {
	for _, tt := range []struct {
		value        string
		phrase, word bool
	}{
		{"1 to 128", true, false},
		{"is not set", true, false},
		{"the server:", true, false},
		{"12 34 56 78", true, false},
		{"correct horse battery staple", false, false},
		{"let me in, 7x!Kq", false, false},
		{"production", false, true},
		{"Password1", false, true},
		{"lm-studio", false, true},
		{"20260101", false, true},
		{"gizmoGadget", false, false},
		{"k3yB1ade", false, false},
		{"abcdefghijklmnopqrstuvwx", false, false},
	} {
		if p, w := Phrase(tt.value), OneWord(tt.value); p != tt.phrase || w != tt.word {
			t.Errorf("%q: Phrase = %v, OneWord = %v; want %v, %v", tt.value, p, w, tt.phrase, tt.word)
		}
	}
}
