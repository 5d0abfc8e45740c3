// Package termtext supports tests of terminal output: it has a text that would act on a
// terminal, and a check that a text does not.
package termtext

import (
	"testing"
	"unicode"
)

// Evil is text that would act on a terminal: a control sequence in its 8-bit form,
// text in the other direction, invisible marks, DEL, a tag.
const Evil = "a\u009b31m b\u202ec\u2066d\u200fe\u061cf\u2028g\u200bh\u007fi\U000e0041j é 😀"

// Safe fails the test if a text would act on a terminal.
func Safe(t testing.TB, what, out string) {
	t.Helper()
	for _, r := range out {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%s prints %U: %+q", what, r, out)
			return
		}
	}
}
