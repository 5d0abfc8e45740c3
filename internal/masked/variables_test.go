package masked_test

import (
	"testing"

	"github.com/yaya-ai/yaya/internal/masked"
)

func TestSecretVariable(t *testing.T) {
	for name, want := range map[string]bool{
		"GITHUB_TOKEN": true, "GH_TOKEN_RO": true, "TOKEN_1": true, "CLIENT_SECRET_B64": true, "NPMTOKEN": true, "DB_PASS": true, "PGPASSWORD": true,
		"GITHUB_PAT": true, "BASIC_AUTH": true, "KEY": true, "SENTRY_DSN": true, "SLACK_WEBHOOK_URL": true, "CONN_STR": true, "PWD_DB": false, "DB_PWD": true,
		"PWD": false, "OLDPWD": false, "PATH": false, "COMPASS": false, "KEYBOARD": false, "AUTHOR": false, "LOG_LEVEL": false, "SSH_AUTH_SOCK": false,
	} {
		if got := masked.SecretVariable(name); got != want {
			t.Errorf("SecretVariable(%q) = %t, want %t", name, got, want)
		}
	}
}

// Values of yaya's environment hide no ordinary words of a record (GF-8).
func TestInherited(t *testing.T) {
	for name, c := range map[string]struct {
		variable, value string
		want            bool
	}{
		"a token":              {"GITHUB_TOKEN", "ghp-Made1Up2Here", true},
		"a password":           {"DB_PASS", "Correct-Horse", true},
		"long small letters":   {"API_KEY", "correcthorsebatterystaple", true},
		"a long number":        {"PASSWORD", "31415926535897932384", true},
		"no secret":            {"EDITOR", "Made1Up2Here", false},
		"no":                   {"DISABLE_TOKEN", "no", false},
		"a switch":             {"USE_SECRET", "disabled", false},
		"a kind of store":      {"CREDENTIAL_STORE", "secretservice", false},
		"a number":             {"TOKEN_TTL", "86400000", false},
		"a line":               {"PASSWORD", "================", false},
		"a folder":             {"SECRETS_DIR", "/home/x/work", false},
		"the path of a folder": {"MY_SECRETS", "/home/x/work", false},
		"a folder at the top":  {"MY_SECRETS", "/dev", false},
		"a path of the home":   {"MY_SECRETS", "~/keys/work", false},
		"not quite a path":     {"DB_PASSWORD", "/hunter2!x", true},
		"nor one from here":    {"DB_PASSWORD", "./Tr0ub4dor&3", true},
		"the ID of a token":    {"AUTH_TOKEN_ID", "qwertyuiopasdfgh", true},
		"an address":           {"TOKEN_URL", "https://idp.example/token", false},
	} {
		if got := masked.Inherited(c.variable, c.value); got != c.want {
			t.Errorf("%s: Inherited(%q, %q) = %t, want %t", name, c.variable, c.value, got, c.want)
		}
	}
}

func TestSecretValue(t *testing.T) {
	for v, want := range map[string]bool{
		"q7Xc9LmTz2Rw8KdB": true, "7169605F62C751356D054A26A821E680E5FA6305": true, "0f8fad5b-d9cb-469f-a165-70867728950e": true, "AbCd+EfGh/1234567890==": true,
		"claude-sonnet-4-20250514": false, "eu-central-1": false, "/usr/Local/bin2/Tools": false, "https://Host1.example/x": false, "2026-11-22T10:00:00Z": false,
		"true": false, "1234567890123456": false, "node_modules/.bin/Tool-v2.1-x": false, "Mozilla 5 on Linux x86": false,
	} {
		if got := masked.SecretValue(v); got != want {
			t.Errorf("SecretValue(%q) = %t, want %t", v, got, want)
		}
	}
}

// The name of a token is not hidden where a principal stands; a token is.
func TestPrincipals(t *testing.T) {
	var s masked.Secrets
	s.Learn("known-by-yaya")
	for text, want := range map[string]string{
		`{"principal":"token:laptop"}`:                                        `{"principal":"token:laptop"}`,
		`{"principal":"token:known-by-yaya"}`:                                 `{"principal":"token:****"}`,
		`{"principal":"token:ghp_0123456789abcdefghijklmnopqrstuvwxyz"}`:      `{"principal":"token:****"}`,
		`{"text":"token:laptop"}`:                                             `{"text":"token:****"}`,
		`{"principal":"token: hunter2", "message":"principal token:hunter2"}`: `{"principal":"token: ****", "message":"principal token:****"}`,
	} {
		if got := s.String(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
