package servers

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is shown has no secret, and what comes back as it was shown is as it was.
func TestMask(t *testing.T) {
	parse := func(entry string) Server {
		t.Helper()
		cfg, err := Parse("t", []byte(`{"mcpServers":{"s":`+entry+`}}`), FormatYaya)
		if err != nil || len(cfg.Servers) != 1 {
			t.Fatal(err, cfg.Invalid)
		}
		return cfg.Servers[0]
	}
	for name, entry := range map[string]string{
		"stdio": `{"command":"npx","args":["-y","pkg"],"env":{"API_KEY":"sk-canary-123456","HOST":"${HOST}","N":"1canary"}}`,
		"http":  `{"type":"http","url":"https://canary:canary@example.com/mcp?key=canary-abcdef&x=1","headers":{"Authorization":"Bearer canary"},"oauth":{"clientId":"id","clientSecret":"canary-secret-1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(entry)
			shown, err := s.Masked()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(shown), "canary") || strings.Contains(s.Runs(), "canary") {
				t.Errorf("a secret is shown: %s; %s", shown, s.Runs())
			}
			back, err := s.Unmask(shown)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := json.Marshal(s)
			if got, _ := json.Marshal(parse(string(back))); string(got) != string(want) {
				t.Errorf("it came back as %s, was %s", got, want)
			}
			// One secret is replaced, the others stay.
			var m map[string]any
			if err := json.Unmarshal(shown, &m); err != nil {
				t.Fatal(err)
			}
			part := "env"
			if name == "http" {
				part = "headers"
			}
			m[part].(map[string]any)["NEW"] = "other" //nolint:forcetypeassert // test
			raw, _ := json.Marshal(m)
			if back, err = s.Unmask(raw); err != nil || !strings.Contains(string(back), "other") || strings.Contains(string(back), "****") || !strings.Contains(string(back), "canary") {
				t.Errorf("got %s, %v", back, err)
			}
		})
	}
}

// R18: what is agreed to is shown exactly: nothing can be hidden in blanks, quotes or
// characters that change the direction of the text.
func TestRuns(t *testing.T) {
	s := Server{Transport: Stdio, Command: "/bin/sh", Args: []string{"-c", "echo hi; \u202erm -rf ~", "", "a b"}, Dir: "/tmp/x y", Env: map[string]string{"KEY": "secret"}, PassEnv: []string{"HOME"}, EnvFile: ".env"}
	want := `/bin/sh -c "echo hi; \u202erm -rf ~" "" "a b" in "/tmp/x y" with KEY, HOME and the variables of ".env"`
	if got := s.Runs(); got != want {
		t.Errorf("got %s", got)
	}
	if got := (Server{Transport: HTTP, URL: "https://h/mcp?k=secret-123456", Headers: map[string]string{"B": "1", "A": "2"}}).Runs(); got != "https://h/mcp?k=****3456 with the headers A, B" {
		t.Errorf("got %s", got)
	}
}
