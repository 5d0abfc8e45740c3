package servers

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/masked"
)

// Runs says what connecting to the server would run or call: each argument quoted unless
// it is plain, the folder, and the names of what is added to the environment. Secrets in
// the command line and in the URL are masked, but nothing that a shell would act on.
func (s Server) Runs() string {
	s.Command, s.Args = masked.Word(s.Command), masked.Args(s.Command, s.Args)
	return s.RunsExactly()
}

// RunsExactly is [Server.Runs] with the whole command line, for a server that somebody
// else has configured and that has to be agreed to: in what is masked could stand
// anything. Of a URL, secrets are masked.
func (s Server) RunsExactly() string {
	if s.Transport != Stdio {
		out := hideURL(s.URL)
		if len(s.Headers) > 0 {
			out += " with the headers " + strings.Join(slices.Sorted(maps.Keys(s.Headers)), ", ")
		}
		return out
	}
	words := make([]string, 0, len(s.Args)+1)
	for _, w := range append([]string{s.Command}, s.Args...) {
		if w == "" || strings.ContainsFunc(w, notPlain) {
			w = strconv.QuoteToASCII(w)
		}
		words = append(words, w)
	}
	out := strings.Join(words, " ")
	if s.Dir != "" {
		out += " in " + strconv.QuoteToASCII(s.Dir)
	}
	if names := append(slices.Sorted(maps.Keys(s.Env)), s.PassEnv...); len(names) > 0 {
		out += " with " + strings.Join(names, ", ")
	}
	if s.EnvFile != "" {
		out += " and the variables of " + strconv.QuoteToASCII(s.EnvFile)
	}
	return out
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=@,+%~", r)
}
