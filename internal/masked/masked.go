// Package masked says how secrets are shown.
package masked

import "strings"

// Mask is what is shown of a secret: that there is one, and nothing of it.
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
