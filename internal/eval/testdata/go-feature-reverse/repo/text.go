// Package text has small functions on strings.
package text

import "strings"

// Title returns s with its first letter in upper case.
func Title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
