package masked

import "strings"

// words are what the names of secrets end in: after a separator or at the beginning
// of a word, and loose ones after anything.
var (
	words = []string{"token", "api_key", "api-key", "apikey", "private_key", "privatekey", "access_key", "accesskey", "authorization", "credential", "credentials", "cookie"}
	loose = []string{"password", "passwd", "passphrase", "secret"}
)

// SecretName reports whether what has that name is a secret: "GITHUB_TOKEN",
// "clientSecret", "X-Api-Key".
func SecretName(name string) bool {
	if len(name) < len("token") || len(name) > 128 {
		return false
	}
	if !lastByte(name[len(name)-1]) {
		return false
	}
	lower := strings.ToLower(name)
	for _, w := range loose {
		if strings.HasSuffix(lower, w) {
			return true
		}
	}
	for _, w := range words {
		if !strings.HasSuffix(lower, w) {
			continue
		}
		i := len(name) - len(w)
		if i == 0 || name[i-1] == '_' || name[i-1] == '-' || name[i-1] == '.' || (name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z') {
			return true
		}
	}
	return false
}

// lastByte reports whether the name of a secret can end so: most names are told by that.
func lastByte(c byte) bool {
	switch c | 0x20 {
	case 'n', 'y', 'l', 's', 'e', 'd', 't':
		return true
	}
	return false
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// slashes counts the backslashes before text[i].
func slashes(text []byte, i int) int {
	n := 0
	for i-n > 0 && text[i-n-1] == '\\' {
		n++
	}
	return n
}

// named finds the value that follows the separator text[i], if its name is one of a
// secret: from and to are where it lies, mask is to be put there. to is 0 if there is
// nothing to hide.
func named(text []byte, i int) (from, to int, mask string) {
	j := i
	for j > 0 && i-j < 3 && (text[j-1] == ' ' || text[j-1] == ':') {
		j--
	}
	quoted, depth := false, 0
	if j > 0 && (text[j-1] == '"' || text[j-1] == '\'') {
		quoted = true
		depth = slashes(text, j-1)
		j -= 1 + depth
	}
	if j <= 0 || !lastByte(text[j-1]) {
		return 0, 0, Mask
	}
	start := j
	for start > 0 && j-start < 128 && nameByte(text[start-1]) {
		start--
	}
	// What an escape ends with, as in \nTOKEN=, is no part of the name, and does no harm.
	if !SecretName(string(text[start:j])) {
		return 0, 0, Mask
	}
	k := i + 1
	for k < len(text) && k-i < 5 && text[k] == ' ' {
		k++
	}
	open := k
	for open < len(text) && text[open] == '\\' {
		open++
	}
	switch {
	case open < len(text) && (text[open] == '"' || text[open] == '\''):
		from, to = open+1, closing(text, open, open-k)
	case quoted: // a member of an object: a number is hidden, what is inside of values is looked at later
		from, to = k, k
		for to < len(text) && (text[to] >= '0' && text[to] <= '9' || text[to] == '-' || text[to] == '.' || text[to] == 'e' || text[to] == 'E' || text[to] == '+') {
			to++
		}
		quote := strings.Repeat(`\`, depth) + `"`
		mask = quote + Mask + quote
	default:
		from, to = k, k
		for to < len(text) && !strings.ContainsRune(" \t\r\n,;&\"'<>\\)}]", rune(text[to])) {
			to++
		}
	}
	if mask == "" {
		mask = Mask
	}
	if to <= from || text[from] == '$' { // a reference is no secret
		return 0, 0, mask
	}
	return from, to, mask
}

// closing returns where the string ends whose quote is text[open], after that many
// backslashes: a quote inside of a string inside of a string has more of them.
func closing(text []byte, open, depth int) int {
	for i := open + 1; i < len(text); i++ {
		if text[i] != text[open] {
			if text[open] == '\'' && text[i] == '\n' {
				return i
			}
			continue
		}
		run := min(slashes(text, i), i-open-1)
		if run < depth {
			return i - run
		}
		if (run-depth)/(depth+1)%2 == 0 {
			return i - depth
		}
	}
	return len(text)
}

// credentials finds what follows the scheme of an Authorization header, whose end is
// the space at text[i].
func credentials(text []byte, i int) (from, to int) {
	scheme := 0
	switch {
	case i == 0 || text[i-1]|0x20 != 'r' && text[i-1]|0x20 != 'c':
		return 0, 0
	case i >= 6 && strings.EqualFold(string(text[i-6:i]), "bearer"):
		scheme = 6
	case i >= 5 && strings.EqualFold(string(text[i-5:i]), "basic"):
		scheme = 5
	}
	if scheme == 0 || (i > scheme && nameByte(text[i-scheme-1]) && text[i-scheme-1] != 'n') { // \nBearer
		return 0, 0
	}
	from = i + 1
	digit := false
	for to = from; to < len(text); to++ {
		c := text[to]
		if !nameByte(c) && c != '.' && c != '~' && c != '+' && c != '/' && c != '=' {
			break
		}
		digit = digit || c >= '0' && c <= '9'
	}
	if to-from < Shortest || !digit && to-from < 20 {
		return 0, 0
	}
	return from, to
}
