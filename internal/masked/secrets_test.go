package masked

import (
	"encoding/json"
	"strings"
	"testing"
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
		"an env file":          {`{"text":"A=1\nGITHUB_TOKEN=ghp_1\nPGPASSWORD=x y\n"}`, `{"text":"A=1\nGITHUB_TOKEN=****\nPGPASSWORD=**** y\n"}`},
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
