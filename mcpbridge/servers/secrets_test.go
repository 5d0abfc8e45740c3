package servers_test

import (
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func TestSecrets(t *testing.T) {
	s := servers.Server{
		Env:     map[string]string{"GITHUB_TOKEN": "env-token", "HOME_DIR": "/home/x", "DATABASE_URL": "postgres://me:db-pass@host/x?sslmode=off", "SIGNING_KEY": "env-key", "LATER_TOKEN": "${LATER}", "DB_PASS": "env-pass", "TOKEN_2": "env-second", "PWD": "/home/x", "REGION": "eu-central-1", "MODEL": "claude-sonnet-4-20250514", "TOKEN_URL": "https://idp.example/token", "CREDENTIALS_FILE": "/home/x/work", "SAUCE": "q7Xc9LmTz2Rw8KdB"},
		Args:    []string{"--token", "arg-token", "--api-key=arg-key", "--verbose", "/path"},
		URL:     "https://me:url-pass@host/p?key=url-key",
		Headers: map[string]string{"Authorization": "Bearer header-token", "Accept": "text/plain"},
		OAuth:   &servers.OAuth{ClientSecret: "oauth-secret"},
	}
	got := s.Secrets()
	slices.Sort(got)
	want := []string{"Bearer header-token", "arg-key", "arg-token", "db-pass", "env-key", "env-pass", "env-second", "env-token", "header-token", "oauth-secret", "q7Xc9LmTz2Rw8KdB", "url-key", "url-pass"}
	if !slices.Equal(got, want) {
		t.Errorf("Secrets = %q, want %q", got, want)
	}
}

// A value that an entry declares under the name of a secret is one, even if it begins like
// a path; it is learnt, since what is shown of the entry hides it, too.
func TestDeclaredSecretsAreLearnt(t *testing.T) {
	for name, value := range map[string]string{"DB_PASSWORD": "/hunter2!x", "PGPASSWORD": "./Tr0ub4dor&3", "AUTH_TOKEN_ID": "qwertyuiopasdf", "VAULT_SECRET_ID": "qwerty-uiop-1"} {
		s := servers.Server{Env: map[string]string{name: value}}
		if got := s.Secrets(); !slices.Equal(got, []string{value}) {
			t.Errorf("%s=%s: Secrets = %q, want the value", name, value, got)
		}
		if got := s.Declared(func(string) (string, bool) { return "", false }); !slices.Equal(got, []string{value}) && name != "AUTH_TOKEN_ID" {
			t.Errorf("%s=%s: Declared = %q, want the value", name, value, got)
		}
	}
}
