package servers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/yaya-ai/yaya/internal/members"
)

// ignored are known members without any effect in yaya; they are dropped silently.
var ignored = []string{
	"name", "displayName", "display_name", "alwaysLoad", "discoveryCache", "role", "dev", "bundled", "gallery", "version",
	"request_timeout_ms", "supports_parallel_tool_calls", "experimental_environment", "sandboxEnabled", "modernLogLevel",
	"source", "serverName", "faviconUrl", "sourceFile", "sourceSlug", "metadata", "remoteConfigured", "oauth_token",
}

// unused are members that have an effect in other clients, but not in yaya.
var unused = []string{
	"authProviderType", "targetAudience", "targetServiceAccount", "headersHelper", "watchPaths", "requestOptions", "requestInit", "settings", "remote", "workspace",
}

// approvals are members that relax or require approvals in other clients. yaya's own rules
// apply instead, and a warning says so.
var approvals = []string{"alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode"}

// reading is the additional result of parseServer: skip says that the entry is not for yaya,
// warnings list omitted members, and changes list modified ones.
type reading struct {
	skip     bool
	warnings []string
	changes  []string
}

func parseServer(file, name string, format Format, project bool, obj map[string]any) (s Server, r reading, err error) {
	s = Server{Name: name, File: file, Format: format, Project: project}
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, unicode.IsControl) {
		return s, r, errors.New("its name must have 1 to 128 characters and no control characters")
	}
	e := &entry{obj: obj, used: map[string]bool{}, format: format, project: project}
	if format != FormatYaya {
		e.flatten()
	}
	if r.skip, err = e.server(&s); r.skip || err != nil {
		return s, r, errors.Join(append(e.errs, err)...)
	}
	e.rest(&s)
	if e.rewrote {
		e.changed("variables are written as ${NAME}")
	}
	r.warnings, r.changes = e.warnings, e.changes
	if err := errors.Join(e.errs...); err != nil {
		return s, r, err
	}
	return s, r, s.check()
}

// server reads the command, or the address for requests.
func (e *entry) server(s *Server) (skip bool, err error) {
	kind := e.str("type", "transport", "transportType")
	command, key := e.get("command", "cmd")
	switch c := command.(type) {
	case string:
		s.Command = e.canonical(key, c)
	case []any:
		words := e.list(key)
		if len(words) > 0 {
			s.Command, s.Args = words[0], words[1:]
		}
	case nil:
	default:
		e.bad(key, "a string or a list of strings", command)
	}
	s.Args = append(s.Args, e.list("args")...)
	s.Env = e.table("env", "environment", "envs")
	s.EnvFile = e.str("envFile", "env_file")
	s.Dir = e.str("cwd", "working_directory", "workingDirectory")
	s.PassEnv = e.passEnv()

	httpURL := e.str("httpUrl")
	plainURL := e.str("url", "serverUrl", "uri")
	s.URL = cmp.Or(httpURL, plainURL)
	s.Headers = e.headers()
	s.Description = e.str("description")
	if v, ok := e.flag("sse_fallback"); ok {
		s.FallBackToSSE = v
	}
	if e.format == FormatZed && s.Command == "" && s.URL == "" {
		return false, errors.New("it comes from a Zed extension, which brings the command; give yaya the command itself, with: yaya mcp add")
	}
	skip, err = setTransport(s, kind, httpURL != "", e.format)
	if kind == "" && s.Transport == SSE {
		e.changed(`type is "sse", as %s takes a url without a type`, e.format.Client())
	}
	return skip, err
}

// rest reads how yaya uses the server.
func (e *entry) rest(s *Server) {
	if v, ok := e.flag("enabled"); ok {
		s.Disabled = !v
	}
	if v, ok := e.flag("disabled"); ok {
		s.Disabled = v
	}
	s.Required, _ = e.flag("required")
	e.timeouts(s)
	e.tools(s)
	s.Validate, _ = e.flag("validate")
	s.Era = Era(e.str("protocolEra", "protocol_era"))
	s.Session = e.str("session")
	if v, key := e.get("prefix"); key != "" {
		prefix, ok := v.(string)
		if !ok {
			e.bad(key, "a string", v)
		}
		s.Prefix = &prefix
	}
	if e.format == FormatYaya && !e.project {
		s.RunOn = e.str("run_on")
	}
	s.Roots = e.roots()
	s.MaxResult, s.MaxInFlight = e.whole("max_result_bytes"), e.whole("max_in_flight")

	s.OAuth, s.NoOAuth = e.oauth()
	s.Sandbox = e.sandbox(s.File)
	s.Catalog = e.origin()
	for _, k := range unused {
		if v, key := e.get(k); key != "" && !empty(v) {
			e.warn("%q is not used by this version of yaya", key)
		}
	}
	// In other clients, "trust" is a boolean about approvals. Only the user, not a project, may
	// decide that a server's tools can change without approval.
	trust, isText := e.obj["trust"].(string)
	if (isText || e.format == FormatYaya) && !e.project {
		s.Trust = trust
		e.get("trust")
	}
	for _, k := range approvals {
		if k == "trust" && s.Trust != "" {
			continue
		}
		if v, key := e.get(k); key != "" && !empty(v) {
			e.warn("%q is not imported: yaya's own approval rules apply", key)
		}
	}
	e.get(ignored...)
	for _, k := range slices.Sorted(maps.Keys(e.obj)) {
		switch {
		case e.used[k]:
		case e.format == FormatYaya:
			e.errs = append(e.errs, fmt.Errorf("unknown key %q%s", k, members.Known(k, new(written))))
		default:
			e.warn("unknown key %q is left out", k)
		}
	}
}

// empty reports whether a value means the same as its absence.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
