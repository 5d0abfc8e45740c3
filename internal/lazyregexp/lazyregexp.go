// Package lazyregexp compiles regular expressions at their first use. Those of all packages
// together took milliseconds of every start of yaya, of each command and each sandbox, though
// most starts use few of them.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// inTest says that a test is running.
var inTest = strings.HasSuffix(os.Args[0], ".test")

// New returns a function that returns the compiled expression. The function is safe for
// concurrent use. A wrong expression panics at its first use, and in every test of its package.
func New(expr string) func() *regexp.Regexp {
	get := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	if inTest {
		get()
	}
	return get
}
