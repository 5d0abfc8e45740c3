package servers

import (
	"slices"
	"testing"
)

// Results conceal only the values that the configuration declares secret: otherwise a
// result must reach its client whole.
func TestDeclared(t *testing.T) {
	s := Server{
		Env: map[string]string{
			"GITHUB_TOKEN": "value-1", "DB_PASS": "value-2", "SLACK_WEBHOOK_URL": "https://hooks.example/value-3", "AWS_SECRET_ACCESS_KEY": "/aB3defghijKLmnop+qrs/tuvwxyz0123456789",
			"POSTGRES_PASSWORD": "postgres", "PIN_TOKEN": "12345678", "API_KEY": "lm-studio", "TOKEN_URL": "https://auth.example/token", "AWS_SHARED_CREDENTIALS_FILE": "creds.ini",
			"GOOGLE_APPLICATION_CREDENTIALS": "/home/ada/key.json", "LOG_LEVEL": "debugging-1", "LOOKS_RANDOM": "aB3defghijKLmnopqrs0", "REF_TOKEN": "${OTHER}",
		},
		PassEnv: []string{"NPM_TOKEN", "SHELL_LEVEL"},
		Headers: map[string]string{"Authorization": "Bearer value-4", "X-Api-Key": "value-5", "X-Tenant": "value-6", "Accept": "value-7"},
		OAuth:   &OAuth{ClientSecret: "value-8"},
		Args:    []string{"--level", "value-9"},
	}
	got := s.Declared(func(name string) (string, bool) { return "own-" + name, true }, "MY_SECRET")
	slices.Sort(got)
	want := []string{"/aB3defghijKLmnop+qrs/tuvwxyz0123456789", "Bearer value-4", "https://hooks.example/value-3", "own-MY_SECRET", "own-NPM_TOKEN", "value-1", "value-2", "value-4", "value-5", "value-8"}
	if !slices.Equal(got, want) {
		t.Errorf("Declared() = %q, want %q", got, want)
	}
}
