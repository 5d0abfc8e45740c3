package servers

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/masked"
)

// plainHeaders are the headers whose values are not secrets.
var plainHeaders = map[string]bool{"accept": true, "content-type": true, "user-agent": true, "accept-language": true}

// Secrets returns the values of an expanded server that must never be shown: variables and
// arguments that are named like secrets, variables that look like keys, passwords in URLs,
// headers, and the credentials of OAuth. Other variables may be paths or levels, and are not
// secret outside their entry.
func (s Server) Secrets() []string {
	var out []string
	add := func(v string) {
		if v != "" && !isReference(v) {
			out = append(out, v)
		}
	}
	fromURL := func(v string) {
		u := cutURL(v)
		if _, password, ok := strings.Cut(u.user, ":"); ok {
			add(password)
			if plain, err := url.PathUnescape(password); err == nil && plain != password {
				add(plain)
			}
		} else {
			add(u.user)
		}
		for _, p := range u.query {
			add(p.value)
		}
	}
	for k, v := range s.Env {
		switch {
		case masked.SecretVariable(k) && !masked.About(k, v), masked.SecretValue(v):
			add(v)
		case strings.Contains(v, "://"):
			u := cutURL(v)
			u.query = nil
			fromURL(u.String())
		}
	}
	for k, v := range s.Headers {
		if plainHeaders[strings.ToLower(k)] {
			continue
		}
		add(v)
		scheme, value, ok := strings.Cut(v, " ")
		if ok && !strings.HasSuffix(strings.ToLower(k), "cookie") { // what follows the scheme
			add(value)
		}
		if pair, err := base64.StdEncoding.DecodeString(value); err == nil && strings.EqualFold(scheme, "basic") {
			if _, password, ok := strings.Cut(string(pair), ":"); ok {
				add(password)
			}
		}
		if strings.EqualFold(k, "cookie") {
			for one := range strings.SplitSeq(v, ";") {
				_, value, _ := strings.Cut(one, "=")
				add(strings.TrimSpace(value))
			}
		}
	}
	for _, v := range masked.ArgSecrets(s.Command, s.Args) {
		add(v)
	}
	fromURL(s.URL)
	if s.OAuth != nil {
		add(s.OAuth.ClientSecret)
		add(s.OAuth.IdPSecret)
	}
	return out
}

// Declared returns the values that the configuration declares as secrets, by the names of
// variables and headers or by their purpose: they are concealed in servers' answers, too. This
// includes variables that the process inherits, found with lookup as in [Server.Environ]. A
// common word is not a secret, whatever its name ([masked.Common]): POSTGRES_PASSWORD=postgres
// must not hide the name of the database.
func (s Server) Declared(lookup func(string) (string, bool), also ...string) []string {
	var out []string
	add := func(v string) {
		if v != "" && !isReference(v) && !masked.Common(v) {
			out = append(out, v)
		}
	}
	env := maps.Clone(s.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, name := range slices.Concat(also, s.PassEnv) {
		if v, ok := lookup(name); ok && env[name] == "" {
			env[name] = v
		}
	}
	for k, v := range env {
		if masked.SecretVariable(k) && !masked.About(k, v) {
			add(v)
		}
	}
	for k, v := range s.Headers {
		if !masked.SecretName(k) && !masked.SecretVariable(strings.ReplaceAll(k, "-", "_")) {
			continue
		}
		add(v)
		scheme, value, ok := strings.Cut(v, " ")
		if ok && !strings.HasSuffix(strings.ToLower(k), "cookie") {
			add(value)
		}
		if pair, err := base64.StdEncoding.DecodeString(value); err == nil && strings.EqualFold(scheme, "basic") {
			if _, password, ok := strings.Cut(string(pair), ":"); ok {
				add(password)
			}
		}
	}
	if s.OAuth != nil {
		add(s.OAuth.ClientSecret)
		add(s.OAuth.IdPSecret)
	}
	return out
}
