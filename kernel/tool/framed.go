package tool

import (
	"crypto/sha256"
	"fmt"
)

// Framed returns a text of others between two lines of yaya's. The first says what the text is and
// names the last, which the text cannot contain: it has the first 64 bits of the SHA-256 of id and
// text. So the text cannot end early and continue as somebody else's. The same text has the same
// frame, which keeps requests to models the same. The id names the text within a message.
func Framed(what, id, text string) string {
	sum := sha256.Sum256([]byte(id + "\n" + text))
	end := fmt.Sprintf("[end of %s %x]", id, sum[:8])
	return fmt.Sprintf("[%s; it ends with the line %q]\n%s\n%s", what, end, text, end)
}
