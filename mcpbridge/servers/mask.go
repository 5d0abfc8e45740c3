package servers

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/masked"
)

// hide hides a secret, but shows that it is set.
func hide(s string) string {
	if s == "" || isReference(s) {
		return s
	}
	return masked.Mask
}

// isReference reports whether a value is a reference to a variable or to a secret: the
// reference is not secret, but its value is, and its default may be.
func isReference(s string) bool { return masked.Reference(s) }

// Masked returns the server as an entry of a configuration file, with its secrets masked: the
// values of its environment, its headers, its URL's query and user, its OAuth secrets, and
// everything that is named or looks like a secret in its command line and in the path of its
// URL. References to variables stay.
func (s Server) Masked() (json.RawMessage, error) {
	m := s
	m.Command, m.Args = masked.Word(s.Command), masked.Args(s.Command, s.Args)
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
	u := cutURL(s)
	u.user, u.path, u.fragment = hide(u.user), masked.Text(u.path), masked.Text(u.fragment)
	for i := range u.query {
		u.query[i].value = hide(u.query[i].value)
	}
	return u.String()
}

// parts are the parts of a URL, which may contain variables that [url.Parse] rejects. Joining
// them yields the original URL.
type parts struct {
	scheme, user, host, path string
	query                    []parameter
	fragment                 string
}

// parameter is a parameter of a query. A lone value has no name.
type parameter struct{ name, value string }

func cutURL(s string) parts {
	var u parts
	i := strings.Index(s, "://")
	if i < 0 {
		u.path = s
		return u
	}
	u.scheme, s = s[:i], s[i+3:]
	if i = strings.IndexByte(s, '#'); i >= 0 {
		s, u.fragment = s[:i], s[i:]
	}
	s, query, _ := strings.Cut(s, "?")
	for part := range strings.SplitSeq(query, "&") {
		p := parameter{value: part}
		if i = strings.IndexByte(part, '='); i >= 0 {
			p = parameter{part[:i+1], part[i+1:]}
		}
		u.query = append(u.query, p)
	}
	u.host = s
	if i = strings.IndexByte(s, '/'); i >= 0 {
		u.host, u.path = s[:i], s[i:]
	}
	if i = strings.LastIndexByte(u.host, '@'); i >= 0 {
		u.user, u.host = u.host[:i], u.host[i+1:]
	}
	return u
}

func (u parts) String() string {
	if u.scheme == "" {
		return u.path
	}
	out := u.scheme + "://"
	if u.user != "" {
		out += u.user + "@"
	}
	out += u.host + u.path
	for i, p := range u.query {
		switch {
		case i > 0:
			out += "&"
		case len(u.query) > 1 || p != (parameter{}):
			out += "?"
		}
		out += p.name + p.value
	}
	return out + u.fragment
}

// place returns the destination of requests to a URL. It includes the path: different paths of
// one host may belong to different people.
func (u parts) place() string {
	scheme, host := strings.ToLower(u.scheme), strings.ToLower(u.host)
	port := map[string]string{"http": ":80", "https": ":443"}[scheme]
	return scheme + "://" + strings.TrimSuffix(host, port) + "/" + strings.TrimPrefix(u.path, "/")
}

// Unmask returns the server with its masked values replaced by those of old at the same place.
// A secret may only be used for its original purpose: it is an error if the server differs from
// old in its program, variables or address, or if old has no such secret. The zero server has
// none.
func (s Server) Unmask(old Server) (Server, error) {
	if old.Transport == "" {
		return s, s.checkMasks()
	}
	restored := s.restored(old)
	if moved := restored.moved(old); moved != "" {
		if field := s.maskedField(); field != "" {
			return s, fmt.Errorf("%s is masked, and %s has changed since the secret was entered; enter the secret again", field, moved)
		}
		return s, nil
	}
	s = restored
	s.Env, s.Headers = unmaskAll(s.Env, old.Env), unmaskAll(s.Headers, old.Headers)
	s.URL = unmaskURL(s.URL, old.URL)
	if s.OAuth != nil && old.OAuth != nil {
		o := *s.OAuth
		o.ClientSecret, o.IdPSecret = unmask(o.ClientSecret, old.OAuth.ClientSecret), unmask(o.IdPSecret, old.OAuth.IdPSecret)
		s.OAuth = &o
	}
	return s, s.checkMasks()
}

// restored returns the server with old's command line and URL path where they equal the masked
// form of old's.
func (s Server) restored(old Server) Server {
	if s.Command == masked.Word(old.Command) && slices.Equal(s.Args, masked.Args(old.Command, old.Args)) {
		s.Command, s.Args = old.Command, old.Args
	}
	u, was := cutURL(s.URL), cutURL(old.URL)
	if u.path == masked.Text(was.path) {
		u.path = was.path
	}
	if u.fragment == masked.Text(was.fragment) {
		u.fragment = was.fragment
	}
	s.URL = u.String()
	return s
}

// moved names the difference that makes the server another one than old, "" if secrets may be
// kept: the program and its variables, or the destination of requests and credentials.
func (s Server) moved(old Server) string {
	if s.Transport == Stdio || old.Transport == Stdio {
		switch {
		case s.Transport != old.Transport:
			return "type"
		case s.Command != old.Command:
			return "command"
		case !slices.Equal(s.Args, old.Args):
			return "args"
		case s.Dir != old.Dir:
			return "cwd"
		case s.EnvFile != old.EnvFile:
			return "envFile"
		case !slices.Equal(s.PassEnv, old.PassEnv):
			return "env_vars"
		}
		return movedVariable(s.Env, old.Env)
	}
	if cutURL(s.URL).place() != cutURL(old.URL).place() {
		return "url"
	}
	var now, was OAuth
	if s.OAuth != nil {
		now = *s.OAuth
	}
	if old.OAuth != nil {
		was = *old.OAuth
	}
	switch {
	case masked.Is(now.ClientSecret) && now.Issuer != was.Issuer:
		return "oauth.issuer"
	case (masked.Is(now.ClientSecret) || masked.Is(now.IdPSecret)) && now.IdPIssuer != was.IdPIssuer:
		return "oauth.idpIssuer"
	}
	return ""
}

// movedVariable names a changed variable, "" if none has changed. Every variable counts: only
// the program knows which of them name a program, an address or a proxy.
func movedVariable(now, old map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if v, had := old[k]; !masked.Is(now[k]) && (!had || v != now[k]) {
			return "env." + k
		}
	}
	for _, k := range slices.Sorted(maps.Keys(old)) {
		if _, has := now[k]; !has {
			return "env." + k
		}
	}
	return ""
}

func unmask(now, old string) string {
	if now == masked.Mask && old != "" {
		return old
	}
	return now
}

func unmaskAll(now, old map[string]string) map[string]string {
	out := maps.Clone(now)
	for k, v := range out {
		out[k] = unmask(v, old[k])
	}
	return out
}

// unmaskURL restores the user, and the parameters by name and position.
func unmaskURL(now, old string) string {
	if now == hideURL(old) {
		return old
	}
	u, was := cutURL(now), cutURL(old)
	u.user = unmask(u.user, was.user)
	left := map[string][]string{}
	for _, p := range was.query {
		left[p.name] = append(left[p.name], p.value)
	}
	for i, p := range u.query {
		if values := left[p.name]; len(values) > 0 {
			u.query[i].value = unmask(p.value, values[0])
			left[p.name] = values[1:]
		}
	}
	return u.String()
}

// maskedField names a secret that is a mask, "" if none is.
func (s Server) maskedField() string {
	switch {
	case masked.Is(s.Command):
		return "command"
	case slices.ContainsFunc(s.Args, masked.Is):
		return "args"
	}
	for _, t := range []struct {
		name   string
		values map[string]string
	}{{"env.", s.Env}, {"headers.", s.Headers}} {
		for _, k := range slices.Sorted(maps.Keys(t.values)) {
			if masked.Is(t.values[k]) {
				return t.name + k
			}
		}
	}
	u := cutURL(s.URL)
	if user, err := url.PathUnescape(u.user); masked.Is(u.user) || (err == nil && masked.Is(user)) {
		return "the user in url"
	}
	if masked.Is(u.path) || masked.Is(u.fragment) {
		return "the path in url"
	}
	for _, p := range u.query {
		if v, err := url.QueryUnescape(p.value); masked.Is(p.value) || (err == nil && masked.Is(v)) {
			return fmt.Sprintf("the query's %q in url", strings.TrimSuffix(p.name, "="))
		}
	}
	switch {
	case s.OAuth != nil && masked.Is(s.OAuth.ClientSecret):
		return "oauth.clientSecret"
	case s.OAuth != nil && masked.Is(s.OAuth.IdPSecret):
		return "oauth.idpClientSecret"
	}
	return ""
}

// checkMasks rejects a mask as a secret.
func (s Server) checkMasks() error {
	if field := s.maskedField(); field != "" {
		return fmt.Errorf("%s is masked, and no secret is known for it; enter the secret", field)
	}
	return nil
}
