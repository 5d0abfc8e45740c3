package upstream

import (
	"strings"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// noise matches lines on standard error that explain nothing: paths of logs, bare codes,
// announcements, stack frames.
var noise = lazyregexp.New(`(?i)^(npm (error|err!)( (code|errno|syscall|path|dest|signal|command|cwd|workspace|location)\b.*| *| A complete log of this run.*|     .*)|npm (notice|warn)\b.*|.*A complete log of this run.*|Traceback \(most recent call last\):|File ".*|at .*\(.*\)|at .*:\d+:\d+|node:internal.*|throw .*|\^+|[-=|+ ]+|See .* --help.*|Unable to find image .* locally|(down|up)load(ing|ed)\b.*|(install|resolv|prepar|build|audit|updat)(ing|ed)\b.*|warn(ing)?\b.*|\(node:\d+\).*Warning.*|debug\b.*|info\b.*)$`)

// complaint matches a line that reports an error.
var complaint = lazyregexp.New(`(?i)\berror\b|\berr!|error:|exception\b|\b(fatal|panic|denied|refused|cannot|can't|unable|missing|invalid|unauthorized|forbidden|illegal|timed out|timeout|abort(ed)?)\b|\bfail(ed|ure|s)?\b|could not|couldn't|not (be )?found|no such|does not exist|×`)

// headline returns the line of a program's standard error that best explains why it ended, made
// safe to show: the first line that reports an error, or else the last meaningful line.
func headline(stderr string) string {
	var last string
	for _, line := range linesOf(stderr) {
		if noise().MatchString(line) {
			continue
		}
		if complaint().MatchString(line) {
			return feature.Clean(line, 300)
		}
		last = line
	}
	if last == "" {
		return lastLine(stderr)
	}
	return feature.Clean(last, 300)
}

// lastLine returns the last line that is not blank, made safe to show.
func lastLine(stderr string) string {
	lines := linesOf(stderr)
	if len(lines) == 0 {
		return ""
	}
	return feature.Clean(lines[len(lines)-1], 300)
}

// color matches terminal sequences for colours and styles.
var color = lazyregexp.New("\x1b\\[[0-9;]*m")

// linesOf returns the lines that are not blank. Each time that a progress bar redraws its line
// counts as a line.
func linesOf(stderr string) []string {
	var out []string
	for _, line := range strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(color().ReplaceAllString(line, "")); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// lastLines returns the last whole lines that fit into limit, made safe to show.
func lastLines(stderr string, limit int) string {
	if cut := len(stderr) - limit; cut > 0 {
		_, rest, found := strings.Cut(stderr[cut:], "\n")
		if !found {
			rest = stderr[cut:] // one long line
		}
		stderr = rest
	}
	return feature.Clean(stderr, limit)
}
