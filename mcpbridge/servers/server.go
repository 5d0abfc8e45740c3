package servers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/masked"
)

// Transport is the way to reach a server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http" // streamable HTTP
	SSE   Transport = "sse"  // HTTP+SSE of 2024-11-05
)

// Era selects the protocol era.
type Era string

// The eras. Auto follows the client, or the pipe that clients share.
const (
	EraAuto   Era = "auto"
	EraLegacy Era = "legacy" // initialize handshake, up to 2025-11-25
	EraModern Era = "modern" // stateless, from 2026-07-28
)

// Session policies: they decide which clients share a connection to the server.
const (
	Shared       = "shared"
	PerPrincipal = "per_principal"
	PerClient    = "per_client"
	PerCall      = "per_call"
	poolStart    = "pool:"
	maxPool      = 64
)

// Bounds of MaxResult: the size that a truncated result needs, and the limit for any result.
const (
	minResult = 4 << 10
	maxResult = 256 << 20

	maxInFlight = 1024
)

// TrustAlways lets a server change its tools.
const TrustAlways = "always"

// Server is one configured server. Strings may contain variables until [Server.Expand].
type Server struct {
	Name      string    `json:"-"`
	File      string    `json:"-"`
	Format    Format    `json:"-"`
	Transport Transport `json:"type"`

	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// PassEnv names variables of yaya's own environment that the child gets.
	PassEnv []string `json:"env_vars,omitempty"`
	EnvFile string   `json:"envFile,omitempty"`
	Dir     string   `json:"cwd,omitempty"`

	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// FallBackToSSE tries HTTP+SSE when the URL does not speak streamable HTTP;
	// set where the format does not tell the two apart.
	FallBackToSSE bool `json:"sse_fallback,omitempty"`

	// OAuth configures authorization at a remote server; nil means to discover it.
	OAuth *OAuth `json:"oauth,omitempty"`
	// NoOAuth disables authorization: a refusal of the server is final.
	NoOAuth bool `json:"-"`

	Disabled     bool          `json:"disabled,omitempty"`
	Required     bool          `json:"required,omitempty"`
	StartTimeout time.Duration `json:"-"`
	CallTimeout  time.Duration `json:"-"`
	// CallMax bounds the total time of a call, with progress; 0 means the setting for all
	// servers.
	CallMax      time.Duration `json:"-"`
	IdleTimeout  time.Duration `json:"-"`
	IncludeTools []string      `json:"enabled_tools,omitempty"`
	ExcludeTools []string      `json:"disabled_tools,omitempty"` // overrides IncludeTools
	Validate     bool          `json:"validate,omitempty"`
	Era          Era           `json:"protocolEra,omitempty"`
	Session      string        `json:"session,omitempty"`
	// RunOn is the node of a cluster that the server runs on, for all nodes; "" is each node that
	// has the entry.
	RunOn string `json:"run_on,omitempty"`
	// Prefix is the prefix for the names of the server's tools and prompts; nil means the
	// server's name, "" means none.
	Prefix *string `json:"prefix,omitempty"`
	// MaxInFlight bounds the concurrent calls per session with the server; 0 means 64.
	MaxInFlight int `json:"max_in_flight,omitempty"`
	// MaxResult bounds a result of the server's tools, in bytes; 0 means unlimited.
	MaxResult int `json:"max_result_bytes,omitempty"`
	// Trust is "always" for a server whose tools may change without approval.
	Trust string `json:"trust,omitempty"`
	// Sandbox limits the server's process; nil means the default of [Server.SandboxProfile].
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// Project says that the server comes from a project's file, not from the user's own.
	Project bool `json:"-"`
	// Package is the installed package that brings the server, which is one of a project then: the
	// package's folder is the project. OwnParts are the folders of the package, within yaya's own,
	// that the server may see, without links in their paths.
	Package  string   `json:"-"`
	OwnParts []string `json:"-"`
	// Roots are the folders that the server gets if it asks for roots and no client answers;
	// paths or file URIs.
	Roots       []string `json:"roots,omitempty"`
	Description string   `json:"description,omitempty"`
	// Catalog says which entry of the catalogue the server was made from; nil for none.
	Catalog *Origin `json:"catalog,omitempty"`
}

type plain Server

// written is a server as it is written: with times in seconds, and false for no authorization.
type written struct {
	plain
	OAuth any     `json:"oauth,omitempty"`
	Start float64 `json:"startup_timeout_sec,omitempty"`
	Call  float64 `json:"tool_timeout_sec,omitempty"`
	Max   float64 `json:"tool_max_sec,omitempty"`
	Idle  float64 `json:"idle_timeout_sec,omitempty"`
}

// MarshalJSON writes the server as an entry of yaya's own file.
func (s Server) MarshalJSON() ([]byte, error) {
	ms := func(d time.Duration) float64 { return d.Seconds() }
	var auth any
	if s.NoOAuth {
		auth = false
	} else if s.OAuth != nil {
		auth = s.OAuth
	}
	return unescaped(written{plain(s), auth, ms(s.StartTimeout), ms(s.CallTimeout), ms(s.CallMax), ms(s.IdleTimeout)})
}

// SessionPolicy returns the effective policy and, for a pool, its size: per principal
// for stdio and per client for HTTP unless configured.
func (s Server) SessionPolicy() (policy string, pool int) {
	if n, ok := strings.CutPrefix(s.Session, poolStart); ok {
		pool, _ = strconv.Atoi(n)
		return poolStart, pool
	}
	if s.Session != "" {
		return s.Session, 0
	}
	if s.Transport == Stdio {
		return PerPrincipal, 0
	}
	return PerClient, 0
}

// PolicyPool is the policy that SessionPolicy returns for pool:N.
const PolicyPool = poolStart

// Allows reports whether a tool is offered; exclusion wins. In both lists, * matches any
// characters and ? matches one.
func (s Server) Allows(tool string) bool {
	fits := func(pattern string) bool { return globMatch(pattern, tool) }
	if slices.ContainsFunc(s.ExcludeTools, fits) {
		return false
	}
	return len(s.IncludeTools) == 0 || slices.ContainsFunc(s.IncludeTools, fits)
}

// Endpoint returns a short form of the server's command or address, without secrets: it quotes
// the command line for a shell and masks secrets in it, and omits the query of a URL.
func (s Server) Endpoint() string {
	if s.RunOn != "" {
		return "on the node " + s.RunOn
	}
	if s.Transport == Stdio {
		words := []string{quoted(masked.Word(s.Command))}
		for _, w := range masked.Args(s.Command, s.Args) {
			words = append(words, quoted(w))
		}
		return strings.Join(words, " ")
	}
	u, _, _ := strings.Cut(s.URL, "?")
	u, _, _ = strings.Cut(u, "#")
	if i := strings.Index(u, "://"); i >= 0 {
		if at := strings.LastIndexByte(u, '@'); at > i {
			u = u[:i+3] + u[at+1:]
		}
	}
	return masked.Text(u)
}

// plainWord matches a word that needs no quoting in a shell. It may contain variables, which
// yaya and the shell both expand.
var plainWord = lazyregexp.New(`^([\pL\pN@%+=:,./_^-]|\$\{[A-Za-z_][A-Za-z0-9_]*\})([\pL\pN@%+=:,./_^~-]|\$\{[A-Za-z_][A-Za-z0-9_]*\})*$`)

// variableOrSpecial matches variables, which stay, and characters that are special in double
// quotes.
var variableOrSpecial = lazyregexp.New("\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|[\"\\\\`$]")

// quoted quotes a word so that it can be pasted into a shell.
func quoted(w string) string {
	switch {
	case plainWord().MatchString(w):
		return w
	case !strings.Contains(w, "${"):
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return `"` + variableOrSpecial().ReplaceAllStringFunc(w, func(s string) string {
		if len(s) > 1 {
			return s
		}
		return `\` + s
	}) + `"`
}

// RootsResult returns the configured answer to roots/list.
func (s Server) RootsResult() []byte {
	type root struct {
		URI  string `json:"uri"`
		Name string `json:"name,omitempty"`
	}
	res := struct {
		Roots []root `json:"roots"`
	}{[]root{}}
	for _, r := range s.Roots {
		u := r
		if !strings.HasPrefix(r, "file://") {
			u = (&url.URL{Scheme: "file", Path: r}).String()
		}
		res.Roots = append(res.Roots, root{u, path.Base(strings.TrimSuffix(r, "/"))})
	}
	out, err := json.Marshal(res)
	if err != nil { // strings can always be marshalled
		return []byte(`{"roots":[]}`)
	}
	return out
}

var prefixPattern = lazyregexp.New(`^[a-zA-Z0-9_-]{0,32}$`)

// check returns an error if the server is unusable.
func (s Server) check() error {
	if s.RunOn != "" && !nodeName().MatchString(s.RunOn) {
		return fmt.Errorf("run_on %q is not the name of a node: yaya cluster status lists the nodes", s.RunOn)
	}
	switch s.Transport {
	case Stdio:
		if s.Command == "" && s.RunOn == "" {
			return errors.New(`it has no "command"; give it one, or a "url" for a remote server`)
		}
		if s.URL != "" {
			return errors.New(`it has a "command" and a "url"; keep the one you mean`)
		}
	case HTTP, SSE:
		if s.URL == "" {
			return fmt.Errorf(`it has type %q and no "url"`, s.Transport)
		}
		if s.Command != "" {
			return errors.New(`it has a "command" and a "url"; keep the one you mean`)
		}
		if !strings.Contains(s.URL, "${") && !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://") {
			return fmt.Errorf("its url %q is not http or https", hideURL(s.URL))
		}
	default:
		return fmt.Errorf("its type %q is not one of stdio, http, sse", s.Transport)
	}
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.PassEnv) {
		if err := CheckEnvName(key); err != nil {
			return err
		}
	}
	switch s.Era {
	case "", EraAuto, EraLegacy, EraModern:
	default:
		return fmt.Errorf("protocolEra %q is not one of auto, legacy, modern", s.Era)
	}
	if s.MaxInFlight < 0 || s.MaxInFlight > maxInFlight {
		return fmt.Errorf("max_in_flight must be between 1 and %d", maxInFlight)
	}
	if s.MaxResult != 0 && (s.MaxResult < minResult || s.MaxResult > maxResult) {
		return fmt.Errorf("max_result_bytes must be between %d and %d", minResult, maxResult)
	}
	if s.Trust != "" && s.Trust != TrustAlways {
		return fmt.Errorf(`trust %q is not "always"`, s.Trust)
	}
	if s.Prefix != nil && !prefixPattern().MatchString(*s.Prefix) {
		return fmt.Errorf("prefix %q must be empty or have 1 to 32 letters, digits, - or _", *s.Prefix)
	}
	for _, r := range s.Roots {
		if !strings.HasPrefix(r, "/") && !strings.HasPrefix(r, "file:///") && !strings.HasPrefix(r, "${") && !strings.HasPrefix(r, "~") {
			return fmt.Errorf("root %q is neither an absolute path nor a file URI", r)
		}
	}
	if err := s.checkSandbox(); err != nil {
		return err
	}
	switch policy := cmp.Or(s.Session, Shared); policy {
	case Shared, PerPrincipal, PerClient, PerCall:
	default:
		n, ok := strings.CutPrefix(policy, poolStart)
		size, err := strconv.Atoi(n)
		if !ok || err != nil || size < 1 || size > maxPool {
			return fmt.Errorf("session %q is not one of shared, per_principal, per_client, per_call, pool:N (N from 1 to %d)", s.Session, maxPool)
		}
	}
	return nil
}
