package servers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A reference to a secret is replaced wherever a variable is, once, and stands nowhere
// else.
func TestSecretReferences(t *testing.T) {
	values := map[string]string{"a": "canary-a", "b.c-d": "canary-b", "ref": "${secret:a} ${HOME}", "host": "example.com"}
	scope := Scope{Env: func(string) (string, bool) { return "${secret:a}", true }, Secret: func(name string) (string, error) {
		if v, ok := values[name]; ok {
			return v, nil
		}
		return "", fmt.Errorf("set it with: yaya secret set %s", name)
	}}
	for name, c := range map[string]struct {
		entry  string
		format Format
		want   string // in what the server comes to, or in the error
		names  []string
		fails  bool
	}{
		"a variable":               {`{"command":"x","env":{"K":"${secret:a}"}}`, FormatYaya, `"K":"canary-a"`, []string{"a"}, false},
		"an argument, twice":       {`{"command":"x","args":["--k=${secret:b.c-d},${secret:a}"]}`, FormatYaya, `--k=canary-b,canary-a`, []string{"a", "b.c-d"}, false},
		"a header":                 {`{"type":"http","url":"https://x.example","headers":{"Authorization":"Bearer ${secret:a}"}}`, FormatYaya, `Bearer canary-a`, []string{"a"}, false},
		"an address":               {`{"type":"http","url":"https://${secret:host}/mcp?k=${secret:a}"}`, FormatYaya, `https://example.com/mcp?k=canary-a`, []string{"a", "host"}, false},
		"OAuth":                    {`{"type":"http","url":"https://x.example","oauth":{"clientId":"i","clientSecret":"${secret:a}"}}`, FormatYaya, `"clientSecret":"canary-a"`, []string{"a"}, false},
		"a file of variables":      {`{"command":"x","envFile":"/run/${secret:a}"}`, FormatYaya, `/run/canary-a`, []string{"a"}, false},
		"a secret that is missing": {`{"command":"x","env":{"K":"${secret:gone}"}}`, FormatYaya, "yaya secret set gone", []string{"gone"}, true},
		"a value with references":  {`{"command":"x","env":{"K":"${secret:ref}"}}`, FormatYaya, `"K":"${secret:a} ${HOME}"`, []string{"ref"}, false},
		"a variable with one":      {`{"command":"x","env":{"K":"${FROM_ENV}"}}`, FormatYaya, `"K":"${secret:a}"`, nil, false},
		"a folder's file":          {`{"command":"x","env":{"K":"${secret:a}"}}`, FormatClaudeCode, `"K":"canary-a"`, []string{"a"}, false},
		"a folder's, missing":      {`{"command":"x","env":{"K":"${secret:gone}"}}`, FormatClaudeCode, "yaya secret set gone", []string{"gone"}, true},
		"another client's file":    {`{"command":"x","env":{"K":"${secret:a}"}}`, FormatCursor, `"K":"canary-a"`, []string{"a"}, false},
		"no name":                  {`{"command":"x","env":{"K":"${secret:}"}}`, FormatYaya, "yaya secret set", []string{""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Parse("f", []byte(`{"mcpServers":{"s":`+c.entry+`}}`), c.format)
			if err != nil || len(cfg.Servers) != 1 {
				t.Fatalf("Parse = %+v, %v", cfg, err)
			}
			s := cfg.Servers[0]
			if got := s.SecretNames(); !slices.Equal(got, c.names) {
				t.Errorf("SecretNames = %q, want %q", got, c.names)
			}
			x, _, err := s.Expand(scope)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Expand = %v, want %q", err, c.want)
				}
				return
			}
			raw, jerr := json.Marshal(x)
			if err := errors.Join(err, jerr); err != nil || !strings.Contains(string(raw), c.want) {
				t.Errorf("Expand = %s, %v, want %s", raw, err, c.want)
			}
			shown, err := s.Masked()
			if err != nil || strings.Contains(string(shown), "canary") {
				t.Errorf("Masked = %s, %v", shown, err)
			}
		})
	}
	s := Server{Name: "s", Transport: Stdio, Command: "x", Env: map[string]string{"K": "${secret:a}"}}
	if _, _, err := s.Expand(Scope{Env: scope.Env}); err == nil || !strings.Contains(err.Error(), "cannot be used here") {
		t.Errorf("Expand without secrets = %v", err)
	}
}

// A value that would cut or break an address or a header is refused; the error names the
// reference and what is wrong, not the value.
func TestUnfitReferences(t *testing.T) {
	const inURL, inHeader = "https://x.example/${secret:v}/mcp?k=1", "Bearer ${secret:v}"
	for _, c := range []struct{ name, url, header, value, want string }{
		{"a space", inURL, "", "canary one", `the secret "v" in its url contains a space: percent-encode`},
		{"a fragment", inURL, "", "canary#one", `the secret "v" in its url contains #`},
		{"a line break", inURL, "", "canary\n", `the secret "v" in its url contains a line break`},
		{"a control character", inURL, "", "canary\x00", "a control character"},
		{"a bare percent sign", inURL, "", "canary%zz", "% without two hexadecimal digits"},
		{"of the environment", "https://x.example/${V:-x}", "", "canary one", `the variable "V" in its url contains a space`},
		{"in a header", "https://x.example/", inHeader, "canary\r\nX: y", `the secret "v" in its header "Authorization" contains a line break`},
		{"a space in a header", "https://x.example/", inHeader, "canary one#%", ""},
		{"encoded", inURL, "", "canary%20one%23", ""},
		{"a whole address", "${secret:v}", "", "https://x.example/mcp?a=1&b=é", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Server{Name: "s", Transport: HTTP, URL: c.url, Headers: map[string]string{"Authorization": c.header}}
			_, _, err := s.Expand(Scope{Env: func(string) (string, bool) { return c.value, true }, Secret: func(string) (string, error) { return c.value, nil }})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("Expand = %v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary")):
				t.Errorf("Expand = %v, want %q without the value", err, c.want)
			}
		})
	}
}

// References are shown, secrets are not.
func TestReferencesAreShown(t *testing.T) {
	for in, shown := range map[string]bool{"${secret:a}": true, "Bearer ${secret:a.b}": true, "${TOKEN}": true, "${TOKEN:-canary}": false, "canary": false, "x${secret:a}": false} {
		s := Server{Name: "s", Transport: HTTP, URL: "https://x.example", Headers: map[string]string{"Authorization": in}}
		raw, err := s.Masked()
		if err != nil || strings.Contains(string(raw), in) != shown {
			t.Errorf("a header %q is shown as %s, %v, want shown %v", in, raw, err, shown)
		}
	}
}

// SEC-2: a secret in a command line is for everybody on the machine to read, and a warning
// says so.
func TestSecretsInCommandLinesAreWarnedOf(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command":"x","args":["--k=${secret:a}","${secret:b}"]}`:                                        `f: server "s": every user of this machine can read the secret a, b in its command line: pass it in env`,
		`{"command":"x","args":["${A}"],"env":{"K":"${secret:a}"}}`:                                       "",
		`{"type":"http","url":"https://x.example/${secret:a}","headers":{"Authorization":"${secret:a}"}}`: "",
	} {
		cfg, err := Parse("f", []byte(`{"mcpServers":{"s":`+entry+`}}`), FormatYaya)
		if got := strings.Join(cfg.Warnings, "\n"); err != nil || got != want {
			t.Errorf("Parse(%s): got the warnings %q, %v; want %q", entry, got, err, want)
		}
	}
}
