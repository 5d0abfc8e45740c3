package servers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// entry reads the members of one server's object, remembers which were read, and collects their
// errors.
type entry struct {
	obj      map[string]any
	used     map[string]bool
	format   Format
	errs     []error
	warnings []string
	changes  []string
	rewrote  bool // a variable
	project  bool // the file is a project's
}

func (e *entry) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}

func (e *entry) changed(format string, args ...any) {
	e.changes = append(e.changes, fmt.Sprintf(format, args...))
}

// get returns the first present member among keys; all keys count as known.
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
		return "a boolean"
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
	return e.canonical(key, s)
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
		out = append(out, e.canonical(key, s))
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
		out[k] = e.canonical(key+"."+k, s)
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

// setTransport determines the transport; skip means that the entry is not for yaya (goose's
// builtin extensions).
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
		case s.URL != "" && s.Command == "" && dialects[format].plainSSE:
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

// whole reads a whole number; 0 means that it is absent.
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
		out = append(out, e.canonical(key, s))
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
				if key == "env_keys" {
					e.changed("%s comes from yaya's environment, not from goose's keyring", v)
				}
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
	if v := e.str("bearerTokenEnvVar"); v != "" {
		set("Authorization", "Bearer ${"+v+"}")
	}
	if v := e.str("apiKey"); v != "" {
		set("Authorization", "Bearer "+v)
		e.changed("apiKey is the header Authorization")
	}
	if v, key := e.get("bearer_token"); v != nil {
		e.errs = append(e.errs, fmt.Errorf("%q would be a secret in a file; use bearer_token_env_var", key))
	}
	for name, value := range out {
		if !headerName().MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			e.errs = append(e.errs, fmt.Errorf("header %q is not valid", name))
		}
	}
	return out
}

var headerName = lazyregexp.New("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")

// timeouts reads all spellings. The unit of "timeout" depends on the format.
func (e *entry) timeouts(s *Server) {
	d := dialects[e.format]
	timeout := e.duration(d.unit, "timeout")
	switch {
	case timeout == 0:
	case d.starts:
		s.StartTimeout = timeout
		e.changed("timeout is startup_timeout_sec, %v", timeout)
	case timeout < time.Second && (e.format == FormatClaudeCode || e.format == FormatClaudeDesktop):
		e.warn("a timeout of %v is left out: Claude Code ignores timeouts below a second", timeout)
	default:
		s.CallTimeout = timeout
		if e.format == FormatYaya {
			e.changed("timeout %v counts milliseconds: it is tool_timeout_sec %v", e.obj["timeout"], timeout.Seconds())
		} else {
			e.changed("timeout is tool_timeout_sec, %v", timeout)
		}
	}
	ms := func(keys ...string) time.Duration { return e.duration(time.Millisecond, keys...) }
	s.StartTimeout = cmp.Or(e.duration(time.Second, "startup_timeout_sec"), ms("startup_timeout_ms", "startupTimeoutMs", "connectionTimeout", "discoveryTimeoutMs"), s.StartTimeout)
	s.CallTimeout = cmp.Or(e.duration(time.Second, "tool_timeout_sec"), ms("toolTimeoutMs"), s.CallTimeout)
	s.CallMax = e.duration(time.Second, "tool_max_sec")
	s.IdleTimeout = e.duration(time.Second, "idle_timeout_sec")
}
