package servers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// entry takes the members of one server's object, remembers which were asked
// for, and collects what is wrong with them.
type entry struct {
	obj    map[string]any
	used   map[string]bool
	format Format
	errs   []error
}

// get returns the first present member among keys; all of them count as known.
func (e *entry) get(keys ...string) (v any, key string) {
	for _, k := range keys {
		e.used[k] = true
		if got, ok := e.obj[k]; ok && key == "" {
			v, key = got, k
		}
	}
	return v, key
}

func (e *entry) bad(key, want string, got any) {
	e.errs = append(e.errs, fmt.Errorf("%q must be %s, not %s", key, want, describe(got)))
}

func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a truth value"
	}
	return "a number"
}

func (e *entry) str(keys ...string) string {
	v, key := e.get(keys...)
	if key == "" || v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		e.bad(key, "a string", v)
	}
	return e.canonical(s)
}

func (e *entry) list(keys ...string) []string {
	v, key := e.get(keys...)
	if key == "" || v == nil {
		return nil
	}
	vs, ok := v.([]any)
	if !ok {
		e.bad(key, "a list of strings", v)
		return nil
	}
	out := make([]string, 0, len(vs))
	for _, v := range vs {
		s, ok := scalar(v)
		if !ok {
			e.bad(key, "a list of strings", v)
			return nil
		}
		out = append(out, e.canonical(s))
	}
	return out
}

// scalar turns strings, numbers and truth values into text.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool, int, int64, float64, uint64:
		return fmt.Sprint(v), true
	}
	return "", false
}

func (e *entry) table(keys ...string) map[string]string {
	v, key := e.get(keys...)
	if key == "" || v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		e.bad(key, "an object of strings", v)
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v == nil {
			continue // null unsets
		}
		s, ok := scalar(v)
		if !ok {
			e.bad(key+"."+k, "a string", v)
			continue
		}
		out[k] = e.canonical(s)
	}
	return out
}

func (e *entry) flag(keys ...string) (value, present bool) {
	v, key := e.get(keys...)
	if key == "" || v == nil {
		return false, false
	}
	b, ok := v.(bool)
	if !ok {
		e.bad(key, "true or false", v)
	}
	return b, true
}

// duration reads a number of units.
func (e *entry) duration(unit time.Duration, keys ...string) time.Duration {
	v, key := e.get(keys...)
	if key == "" || v == nil {
		return 0
	}
	var f float64
	switch n := v.(type) {
	case json.Number:
		f, _ = n.Float64()
	case int:
		f = float64(n)
	case int64:
		f = float64(n)
	case float64:
		f = n
	default:
		e.bad(key, "a number", v)
		return 0
	}
	if f < 0 || math.IsNaN(f) || f > float64(24*time.Hour/unit) {
		e.errs = append(e.errs, fmt.Errorf("%q must be between 0 and a day", key))
		return 0
	}
	return time.Duration(f * float64(unit))
}

var (
	envRef      = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	opencodeRef = regexp.MustCompile(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	geminiRef   = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	bareRef     = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// canonical rewrites the format's own variable syntax to ${NAME} and
// ${NAME:-default}.
func (e *entry) canonical(s string) string {
	s = envRef.ReplaceAllString(s, "$${$1}")
	switch e.format {
	case FormatOpencode:
		s = opencodeRef.ReplaceAllString(s, "$${$1}")
	case FormatGemini: // an unset variable is empty there
		s = bareRef.ReplaceAllString(s, "$${$1:-}")
		s = geminiRef.ReplaceAllString(s, "$${$1:-}")
	case FormatYaya, FormatClaudeDesktop, FormatClaudeCode, FormatVSCode, FormatCursor, FormatCodex, FormatGoose, FormatCline:
	}
	return s
}

// ignored are members that are known and have no bearing on yaya; they are
// dropped without a word.
var ignored = []string{
	"name", "displayName", "display_name", "alwaysLoad", "discoveryCache", "role", "dev", "bundled", "gallery", "version",
	"request_timeout_ms", "supports_parallel_tool_calls", "experimental_environment", "sandbox", "sandboxEnabled", "modernLogLevel",
}

// approvals are members that relax or ask for approvals in other clients.
// yaya's own rules apply instead, and the user is told.
var approvals = []string{"alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode"}

func parseServer(file, name string, format Format, obj map[string]any) (s Server, skip bool, warnings []string, err error) {
	e := &entry{obj: obj, used: map[string]bool{}, format: format}
	s = Server{Name: name, File: file, Format: format}
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, unicode.IsControl) {
		return s, false, nil, errors.New("its name must have 1 to 128 characters and no control characters")
	}

	kind := e.str("type", "transport", "transportType")
	command, key := e.get("command", "cmd")
	switch c := command.(type) {
	case string:
		s.Command = e.canonical(c)
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
	s.Dir = e.str("cwd")
	s.PassEnv = e.passEnv()

	httpURL := e.str("httpUrl")
	plainURL := e.str("url", "serverUrl", "uri")
	s.URL = cmp.Or(httpURL, plainURL)
	s.Headers = e.headers()
	s.Description = e.str("description")
	if v, ok := e.flag("sse_fallback"); ok {
		s.FallBackToSSE = v
	}
	if skip, err := setTransport(&s, kind, httpURL != "", format); skip || err != nil {
		return s, skip, nil, err
	}

	if v, ok := e.flag("enabled"); ok {
		s.Disabled = !v
	}
	if v, ok := e.flag("disabled"); ok {
		s.Disabled = v
	}
	s.Required, _ = e.flag("required")
	e.timeouts(&s)
	e.tools(&s)
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
	s.Roots = e.roots()
	s.MaxResult, s.MaxInFlight = e.whole("max_result_bytes"), e.whole("max_in_flight")

	s.OAuth, s.NoOAuth = e.oauth()
	for _, k := range []string{"authProviderType", "targetAudience", "targetServiceAccount", "headersHelper"} {
		if v, key := e.get(k); key != "" && v != false {
			warnings = append(warnings, fmt.Sprintf("%q is not used by this version of yaya", key))
		}
	}
	// Elsewhere "trust" is a truth value, and about approvals.
	trust, isText := obj["trust"].(string)
	if isText || format == FormatYaya {
		s.Trust = trust
		e.get("trust")
	}
	for _, k := range approvals {
		if k == "trust" && s.Trust != "" {
			continue
		}
		if v, key := e.get(k); key != "" && v != false {
			warnings = append(warnings, fmt.Sprintf("%q is not taken over: yaya's own approval rules apply", key))
		}
	}
	e.get(ignored...)
	for _, k := range slices.Sorted(maps.Keys(obj)) {
		if e.used[k] {
			continue
		}
		if format == FormatYaya {
			e.errs = append(e.errs, fmt.Errorf("unknown key %q", k))
		} else {
			warnings = append(warnings, fmt.Sprintf("unknown key %q", k))
		}
	}
	if err := errors.Join(e.errs...); err != nil {
		return s, false, warnings, err
	}
	return s, false, warnings, s.check()
}

// setTransport settles the transport; skip means that the entry is none of
// ours (goose's builtin extensions).
func setTransport(s *Server, kind string, httpURL bool, format Format) (skip bool, err error) {
	switch strings.ToLower(kind) {
	case "stdio", "local":
		s.Transport = Stdio
	case "http", "streamable-http", "streamablehttp", "streamable_http":
		s.Transport = HTTP
	case "remote":
		s.Transport, s.FallBackToSSE = HTTP, true
	case "sse":
		s.Transport = SSE
	case "":
		switch {
		case httpURL:
			s.Transport = HTTP
		case s.URL != "" && s.Command == "" && (format == FormatGemini || format == FormatCline):
			s.Transport = SSE
		case s.URL != "" && s.Command == "":
			s.Transport, s.FallBackToSSE = HTTP, true
		default:
			s.Transport = Stdio
		}
	case "ws", "websocket":
		return false, errors.New("WebSocket transport is not part of MCP and not supported; use the server's http endpoint")
	case "builtin", "platform", "frontend", "inline_python":
		if format == FormatGoose {
			return true, nil
		}
		fallthrough
	default:
		return false, fmt.Errorf("its type %q is not one of stdio, http, sse", kind)
	}
	if format == FormatVSCode && s.Transport == HTTP {
		s.FallBackToSSE = true
	}
	return false, nil
}

// whole reads a whole number; 0 means that there is none.
func (e *entry) whole(keys ...string) int {
	v, key := e.get(keys...)
	if key == "" || v == nil {
		return 0
	}
	n, ok := v.(json.Number)
	size, err := n.Int64()
	if !ok || err != nil || size < 1 {
		e.bad(key, "a whole number from 1 on", v)
	}
	return int(size)
}

// roots reads paths and URIs, or objects with a uri.
func (e *entry) roots() []string {
	v, key := e.get("roots")
	list, ok := v.([]any)
	if key == "" || v == nil {
		return nil
	}
	if !ok {
		e.bad(key, "a list", v)
	}
	var out []string
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			v = m["uri"]
		}
		s, ok := v.(string)
		if !ok {
			e.bad(key, "a list of paths or URIs", v)
			continue
		}
		out = append(out, e.canonical(s))
	}
	return out
}

// passEnv reads env_vars and env_keys: names, or objects with a name.
func (e *entry) passEnv() []string {
	var out []string
	for _, k := range []string{"env_vars", "env_keys"} {
		v, key := e.get(k)
		if key == "" || v == nil {
			continue
		}
		vs, ok := v.([]any)
		if !ok {
			e.bad(key, "a list of names", v)
			continue
		}
		for _, v := range vs {
			switch v := v.(type) {
			case string:
				out = append(out, v)
			case map[string]any:
				if n, ok := v["name"].(string); ok && (v["source"] == nil || v["source"] == "local") {
					out = append(out, n)
					continue
				}
				e.bad(key, "a list of local names", v)
			default:
				e.bad(key, "a list of names", v)
			}
		}
	}
	return out
}

// headers merges plain headers with those that come from the environment.
func (e *entry) headers() map[string]string {
	out := e.table("headers", "http_headers")
	set := func(name, value string) {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	for name, variable := range e.table("env_http_headers") {
		set(name, "${"+variable+"}")
	}
	if v := e.str("bearer_token_env_var"); v != "" {
		set("Authorization", "Bearer ${"+v+"}")
	}
	if v, key := e.get("bearer_token"); v != nil {
		e.errs = append(e.errs, fmt.Errorf("%q would be a secret in a file; use bearer_token_env_var", key))
	}
	for name, value := range out {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			e.errs = append(e.errs, fmt.Errorf("header %q is not valid", name))
		}
	}
	return out
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")

// timeouts reads the many spellings. "timeout" is the time of a call in most
// formats; goose, Cline and Codex count seconds, and opencode means the start.
func (e *entry) timeouts(s *Server) {
	unit := time.Millisecond
	if e.format == FormatGoose || e.format == FormatCline || e.format == FormatCodex {
		unit = time.Second
	}
	timeout := e.duration(unit, "timeout")
	if e.format == FormatOpencode {
		s.StartTimeout = timeout
	} else if timeout >= time.Second { // below that Claude Code ignores it, so do we
		s.CallTimeout = timeout
	}
	s.StartTimeout = cmp.Or(e.duration(time.Second, "startup_timeout_sec"), e.duration(time.Millisecond, "startup_timeout_ms"), s.StartTimeout)
	s.CallTimeout = cmp.Or(e.duration(time.Second, "tool_timeout_sec"), s.CallTimeout)
	s.IdleTimeout = e.duration(time.Second, "idle_timeout_sec")
}

// tools reads allow- and deny-lists. A tool that any spelling blocks is blocked.
func (e *entry) tools(s *Server) {
	s.IncludeTools = e.list("includeTools", "enabled_tools", "available_tools")
	s.ExcludeTools = e.list("excludeTools", "disabledTools", "disabled_tools")
	if m, key := e.get("toolPermissions"); key != "" {
		perms, _ := m.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(perms)) {
			if perms[name] == "blocked" {
				s.ExcludeTools = append(s.ExcludeTools, name)
			}
		}
	}
	switch t, _ := e.get("tools"); t := t.(type) {
	case []any: // Claude Code: [{name, permission_policy}]
		for _, v := range t {
			m, _ := v.(map[string]any)
			if n, ok := m["name"].(string); ok && m["permission_policy"] == "always_deny" {
				s.ExcludeTools = append(s.ExcludeTools, n)
			}
		}
	case map[string]any, nil: // Codex: tools.<t>.approval_mode
	default:
		e.bad("tools", "a list or an object", t)
	}
}
