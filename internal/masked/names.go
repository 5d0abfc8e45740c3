package masked

import (
	"os"
	"slices"
	"strings"
)

// words are endings of the names of secrets: after a separator or at the beginning
// of a word, and loose ones after anything.
var (
	words = []string{"token", "authorization", "credential", "cookie", "jwt", "authtoken"}
	keys  = []string{
		"api_key", "api-key", "apikey", "private_key", "privatekey", "private-key", "access_key", "accesskey", "access-key", "secret_key", "secretkey", "secret-key",
		"auth_key", "authkey", "auth-key", "account_key", "accountkey", "signing_key", "signingkey", "encryption_key", "encryptionkey", "master_key", "masterkey", "subscription-key", "subscription_key",
	}
	loose = []string{"password", "passwd", "passphrase", "secret"}
	// cursors end in "token", and say where one is.
	cursors = []string{"page", "next", "progress", "continuation", "sync", "resume", "cancel", "cancellation", "delta", "previous", "prev", "cursor", "unk", "eos", "bos", "pad", "stop"}
	// plurals are lists of secrets. Others are counts.
	plurals = []string{"credentials", "cookies", "api_keys", "apikeys", "api-keys", "access_keys", "accesskeys", "private_keys", "privatekeys", "secret_keys", "passwords", "secrets", "passphrases", "api_tokens", "apitokens", "access_tokens", "accesstokens", "auth_tokens", "authtokens", "refresh_tokens", "refreshtokens"}
)

// SecretName reports whether a value with that name is a secret: "GITHUB_TOKEN",
// "clientSecret", "X-Api-Key", "passwords".
func SecretName(name string) bool {
	if len(name) < len("jwt") || len(name) > 128 || !lastByte(name[len(name)-1]) {
		return false
	}
	lower := strings.ToLower(name)
	switch {
	case lower[len(lower)-1] == 's':
		return endsIn(name, lower, plurals) != ""
	case lower[len(lower)-1] == 'y':
		return len(lower) > len("key") && endsIn(name, lower, keys) != ""
	}
	for _, w := range loose {
		if strings.HasSuffix(lower, w) {
			return true
		}
	}
	switch w := endsIn(name, lower, words); w {
	case "":
		return lower == "_auth" || strings.HasSuffix(lower, ":_auth")
	case "token":
		rest := strings.TrimRight(lower[:len(lower)-len(w)], "_-.")
		for _, c := range cursors {
			if i := len(rest) - len(c); i >= 0 && rest[i:] == c {
				return false
			}
		}
	}
	return true
}

// Environment variables abbreviate: these are endings or whole names of secrets, and
// words anywhere in such names.
var (
	shortNames  = []string{"key", "pass", "pwd", "pat", "auth", "bearer", "creds", "cred", "dsn", "salt", "webhook", "webhook_url", "conn_str", "connection_string"}
	secretParts = []string{"token", "secret", "password", "passwd", "passphrase", "credential", "api_key", "apikey"}
)

// SecretVariable is [SecretName] for variables of an environment, of which more are
// secrets: "DB_PASS", "TOKEN_2", "SLACK_WEBHOOK_URL".
func SecretVariable(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "pwd", "oldpwd": // the folders of a shell
		return false
	}
	for _, w := range shortNames {
		if lower == w || strings.HasSuffix(lower, "_"+w) {
			return true
		}
	}
	for _, w := range secretParts {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return SecretName(name)
}

// Inherited reports whether a variable of yaya's inherited environment holds, by its
// name, a secret that can be hidden wherever it appears. It excludes values that
// anybody could write ([Common]), such as a word or a number, and those that only say
// something about a secret ([About]), because hiding them would hide ordinary text.
func Inherited(name, value string) bool {
	return SecretVariable(name) && !Common(value) && !Monotonous(value) && !About(name, value)
}

// about are endings of the names of variables that describe or locate a secret, and do
// not hold it: TOKEN_URL, AWS_SHARED_CREDENTIALS_FILE.
var about = []string{"_file", "_path", "_dir", "_url", "_uri", "_endpoint", "_host", "_name", "_type", "_user", "_region", "_mode"}

// About reports whether a variable that is named after a secret does not hold one: its name
// only describes a secret, or its value is the path of a file. Because a password may begin
// like a path, a path must contain folders, or exist.
func About(name, value string) bool {
	lower := strings.ToLower(name)
	if strings.HasSuffix(lower, "webhook_url") {
		return false
	}
	for _, suffix := range about {
		if strings.HasSuffix(lower, suffix) {
			return true
		}
	}
	file := strings.ReplaceAll(value, `\`, "/")
	if len(file) > 2 && file[1] == ':' && letter(file[0]) { // a drive of Windows
		file = file[2:]
	}
	for _, root := range []string{"/", "~/", "./", "../"} {
		if rest, ok := strings.CutPrefix(file, root); ok && !SecretValue(rest) {
			return strings.Contains(rest, "/") || root == "/" && exists(value)
		}
	}
	return false
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func exists(path string) bool {
	_, err := os.Lstat(path) //nolint:forbidigo // nothing is read
	return err == nil
}

// SecretValue reports whether a value looks random, like a key: one word of 16 bytes or
// more that has small and capital letters and digits, or of 32 or more hexadecimal
// digits.
func SecretValue(v string) bool {
	if len(v) < 16 {
		return false
	}
	var small, capital, digit, other int
	hexadecimal := true
	for i := range len(v) {
		switch c := v[i]; {
		case c >= 'a' && c <= 'z':
			small++
			hexadecimal = hexadecimal && c <= 'f'
		case c >= 'A' && c <= 'Z':
			capital++
			hexadecimal = hexadecimal && c <= 'F'
		case c >= '0' && c <= '9':
			digit++
		case c == '-' || c == '_' || c == '+' || c == '=' || c == '.' || c == '/' && i > 0:
			other++
		default:
			return false
		}
	}
	if digit == 0 || other > len(v)/5 {
		return false
	}
	return small > 0 && capital > 0 || hexadecimal && len(v)-other >= 32
}

// Common reports whether a value is a short word of small letters, or a short number,
// which anybody could write: a password such as postgres, a key such as lm-studio.
func Common(v string) bool {
	letters, digits := true, true
	for i := range len(v) {
		letters = letters && (v[i] >= 'a' && v[i] <= 'z' || v[i] == '-' || v[i] == '_')
		digits = digits && v[i] >= '0' && v[i] <= '9'
	}
	return len(v) < 16 && (letters || digits)
}

// longestPhrase is the maximum length, in bytes, of a value of ordinary words that
// other texts are likely to contain by chance.
const longestPhrase = 19

// Phrase reports whether a value is a few ordinary words or numbers, such as "1 to 128" or
// "is not set": hiding it would hide a part of other texts, and of yaya's own.
func Phrase(v string) bool {
	words := strings.Fields(v)
	if len(words) < 2 || len(v) > longestPhrase {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !ordinary(strings.Trim(w, `.,:;"'()`)) })
}

// OneWord reports whether a value is one ordinary word or a number, as people choose them for
// passwords: letters, the first of them a capital or all small, and digits at its end.
func OneWord(v string) bool { return len(v) < 16 && ordinary(v) }

func ordinary(word string) bool {
	word = strings.TrimRight(word, "0123456789")
	for i := range len(word) {
		small := word[i] >= 'a' && word[i] <= 'z' || word[i] == '-' || word[i] == '_'
		if !small && (i > 0 || word[i] < 'A' || word[i] > 'Z') {
			return false
		}
	}
	return true
}

// endsIn returns the word that a name ends in, "" if it ends in none.
func endsIn(name, lower string, words []string) string {
	for _, w := range words {
		if !strings.HasSuffix(lower, w) {
			continue
		}
		i := len(name) - len(w)
		if i == 0 || !alphanumeric(name[i-1]) || (name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z') {
			return w
		}
	}
	return ""
}

// lastByte reports whether the name of a secret can end with a byte: that excludes most
// names.
func lastByte(c byte) bool {
	switch c | 0x20 {
	case 'n', 'y', 'l', 's', 'e', 'd', 't', 'h':
		return true
	}
	return false
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func nameByte(c byte) bool { return alphanumeric(c) || c == '_' || c == '-' }

// schemes are those of an Authorization header: 1 if one word follows, 2 if more may.
var schemes = map[string]int{
	"bearer": 1, "basic": 1, "token": 1, "apikey": 1, "api-key": 1, "key": 1, "negotiate": 1, "ntlm": 1, "dpop": 1, "bot": 1, "ssws": 1, "jwt": 1, "genie-key": 1, "geniekey": 1, "privatetoken": 1,
	"digest": 2, "hawk": 2, "oauth": 2, "aws4-hmac-sha256": 2, "aws": 2, "mac": 2, "sharedkey": 2, "signature": 2,
}
