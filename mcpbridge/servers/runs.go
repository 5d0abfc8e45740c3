package servers

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/masked"
)

// Runs describes what connecting to the server would run or call: the command line with its
// arguments quoted where necessary, the folder, and the names of added environment variables.
// It masks secrets in the command line and in the URL, but nothing that a shell would
// interpret.
func (s Server) Runs() string {
	s.Command, s.Args = masked.Word(s.Command), masked.Args(s.Command, s.Args)
	return s.RunsExactly()
}

// RunsExactly is [Server.Runs] with the unmasked command line, for the approval of a server
// that somebody else configured: a mask could hide anything. Secrets in a URL are still masked.
func (s Server) RunsExactly() string {
	if node := s.RunOn; node != "" {
		if s.RunOn = ""; s.Command == "" && s.URL == "" {
			return "the server of that name on the node " + node
		}
		return "on the node " + node + ": " + s.RunsExactly()
	}
	if s.Transport != Stdio {
		out := hideURL(s.URL)
		if strings.ContainsFunc(out, func(r rune) bool { return r <= ' ' || r > '~' }) {
			out = strconv.QuoteToASCII(out)
		}
		if len(s.Headers) > 0 {
			out += " with the headers " + strings.Join(slices.Sorted(maps.Keys(s.Headers)), ", ")
		}
		return out
	}
	words := make([]string, 0, len(s.Args)+1)
	for _, w := range append([]string{s.Command}, s.Args...) {
		words = append(words, Shown(w))
	}
	out := strings.Join(words, " ")
	if s.Dir != "" {
		out += " in " + strconv.QuoteToASCII(s.Dir)
	}
	if names := append(slices.Sorted(maps.Keys(s.Env)), s.PassEnv...); len(names) > 0 {
		out += " with " + shownList(names)
	}
	if s.EnvFile != "" {
		out += " and the variables of " + strconv.QuoteToASCII(s.EnvFile)
	}
	return out
}

// Shown returns a foreign word for display in a question: unchanged if it cannot be mistaken
// for anything else, otherwise quoted.
func Shown(word string) string {
	if word == "" || strings.ContainsFunc(word, notPlain) {
		return strconv.QuoteToASCII(word)
	}
	return word
}

func shownList(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Shown(w)
	}
	return strings.Join(out, ", ")
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=@,+%~", r)
}
