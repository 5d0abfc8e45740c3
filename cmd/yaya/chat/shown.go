package chat

import (
	"strings"

	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/screen"
)

// Arguments returns everything that a question is about, in lines whose invisible characters are
// visible. A line of a text of several lines stands behind a bar.
func Arguments(a Ask) string {
	var b strings.Builder
	for _, l := range callargs.Lines(a.Tool, a.Input) {
		if l.Inner {
			b.WriteString("│ ")
		}
		b.WriteString(screen.Clean(l.Head, len(l.Head)) + screen.Clean(l.Text, len(l.Text)) + "\n")
	}
	return b.String()
}
