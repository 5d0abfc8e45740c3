// Package masked hides secrets in texts.
package masked

import "strings"

// Mask replaces a secret in output: it shows that there is one, and no part of it.
const Mask = "****"

// Is reports whether a value is a mask or has one in it, and so cannot be meant as a
// secret: four asterisks in a row, not three and not five.
func Is(s string) bool {
	for {
		i := strings.IndexByte(s, '*')
		if i < 0 {
			return false
		}
		rest := strings.TrimLeft(s[i:], "*")
		if len(s)-i-len(rest) == len(Mask) {
			return true
		}
		s = rest
	}
}

// Reference reports whether a value is a reference to a variable, alone or after the
// scheme of a header: ${NAME}, Bearer ${NAME}. One with a default has a value.
func Reference(s string) bool {
	if scheme, rest, ok := strings.Cut(s, " "); ok && schemes[strings.ToLower(scheme)] != 0 {
		s = rest
	}
	name, ok := strings.CutPrefix(s, "${")
	if !ok {
		return false
	}
	name, ok = strings.CutSuffix(name, "}")
	if !ok || name == "" || strings.Contains(name, ":-") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !nameByte(c) && c != '.' && c != ':' {
			return false
		}
	}
	return true
}
