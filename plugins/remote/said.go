package remote

import (
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// maxSaid bounds what an error repeats of standard error, in characters.
const maxSaid = 300

// exception matches the line with which Node and Bun name an exception that nobody caught.
var exception = lazyregexp.New(`^(Uncaught |\[)?[\w$.]*(Error|Exception|Rejection)\b|^error: `)

// lastWords returns the line of a program's standard error that says why it ended: the exception,
// if an interpreter or Go's runtime printed one with its stack, otherwise the last line.
func lastWords(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return cut.Line(why(lines), maxSaid)
}

func why(lines []string) string {
	last := len(lines) - 1
	begins := func(prefixes ...string) func(string) bool {
		return func(line string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) })
		}
	}
	switch {
	case begins("Node.js v", "Bun v")(lines[last]): // the version, after the stack
		if at := lastOf(lines, exception().MatchString); at >= 0 {
			return lines[at]
		}
		return lines[max(0, last-1)]
	case lastOf(lines, begins("goroutine ")) >= 0:
		if at := lastOf(lines, begins("panic: ", "fatal error: ")); at >= 0 {
			return lines[at]
		}
	}
	if at := lastOf(lines, begins("Traceback (most recent call last)")); at >= 0 { // Python
		for _, line := range lines[at+1:] {
			if line[0] != ' ' && line[0] != '\t' {
				return line // a message may have more lines
			}
		}
	}
	return lines[last]
}

// lastOf returns the last line that is wanted, -1 without one.
func lastOf(lines []string, wanted func(string) bool) int {
	for i, line := range slices.Backward(lines) {
		if wanted(line) {
			return i
		}
	}
	return -1
}
