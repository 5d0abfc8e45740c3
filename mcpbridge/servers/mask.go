package servers

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/masked"
)

// wholeVariable is a reference to a variable: it is no secret, its value is.
var wholeVariable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_.:-]*\}$`)

// hide hides a secret but for its last four characters.
func hide(s string) string {
	if s == "" || wholeVariable.MatchString(s) {
		return s
	}
	if r := []rune(s); len(r) > 8 {
		return "****" + string(r[len(r)-4:])
	}
	return "****"
}

// Masked returns the server as an entry of a configuration file without its secrets:
// what is in its environment, its headers, its URL's query and user, and its OAuth
// secrets. References to variables stay.
func (s Server) Masked() (json.RawMessage, error) {
	m := s
	m.Env, m.Headers = hideAll(s.Env), hideAll(s.Headers)
	m.URL = hideURL(s.URL)
	if s.OAuth != nil {
		o := *s.OAuth
		o.ClientSecret, o.IdPSecret = hide(o.ClientSecret), hide(o.IdPSecret)
		m.OAuth = &o
	}
	return json.Marshal(m)
}

func hideAll(m map[string]string) map[string]string {
	out := maps.Clone(m)
	for k, v := range out {
		out[k] = hide(v)
	}
	return out
}

func hideURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || (u.RawQuery == "" && u.User == nil) {
		return s
	}
	if u.User != nil {
		u.User = url.User("****")
	}
	var query []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		if k, v, ok := strings.Cut(part, "="); ok {
			part = k + "=" + hide(v)
		}
		query = append(query, part)
	}
	u.RawQuery = strings.Join(query, "&")
	return u.String()
}

// Unmask returns an entry with the secrets of the server as it is: whatever in entry
// is as [Server.Masked] shows it, is as it was.
func (s Server) Unmask(entry json.RawMessage) (json.RawMessage, error) {
	shown, err := s.Masked()
	if err != nil {
		return nil, err
	}
	whole, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return masked.Restore(entry, shown, whole)
}

// Runs says exactly what connecting to the server would run or call, for whoever has
// to agree to it: each argument quoted unless it is plain, the folder, and the names
// of what is added to the environment; of a URL, secrets are masked.
func (s Server) Runs() string {
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
