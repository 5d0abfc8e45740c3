package config_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/kernel/config"
)

// FID-10: names of variables are checked where they are set.
func TestPassEnv(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		ok          bool
	}{
		{"names", `["DOCKER_HOST","x_1"]`, true},
		{"none", `[]`, true},
		{"one string", `"DOCKER_HOST"`, false},
		{"a number among them", `["A",1]`, false},
		{"an assignment", `["A=b"]`, false},
		{"an empty name", `[""]`, false},
		{"a space", `["A B"]`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := config.CheckValue("servers.pass_env", json.RawMessage(tc.value)); (err == nil) != tc.ok {
				t.Errorf("CheckValue(%s) = %v, want it taken: %v", tc.value, err, tc.ok)
			}
		})
	}
	w := open(t, t.TempDir(), config.Options{File: []byte("[servers]\npass_env = [\"A\", \"B\"]\n"), FileName: "f"})
	if got, want := w.Texts("servers.pass_env"), []string{"A", "B"}; !slices.Equal(got, want) {
		t.Errorf("Texts = %v, want %v", got, want)
	}
}

// A remedy changes what decides: where a variable does, a command would not.
func TestRemedy(t *testing.T) {
	s := open(t, t.TempDir(), config.Options{Env: []string{"YAYA_SANDBOX__COMMAND__HOSTS=[\"example.com\"]"}, File: []byte("provider = \"one\"\n")})
	for _, tt := range []struct{ name, key, value, want string }{
		{"a variable decides", "sandbox.command.hosts", `'["a"]'`, `start yaya again with YAYA_SANDBOX__COMMAND__HOSTS='["a"]'`},
		{"the file decides", "provider", "two", "yaya config set provider two"},
		{"the default", "approval.timeout", "2m", "yaya config set approval.timeout 2m"},
	} {
		if got := s.Remedy(tt.key, tt.value); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
