package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Owner is the principal of the user that runs yaya.
const Owner = "owner"

// Prefixes of the other principals' names.
const (
	DevicePrefix  = "device:"  // an enrolled device, by its id
	IssuerPrefix  = "issuer:"  // the subject of a token of the configured issuer
	TokenPrefix   = "token:"   // who has a lasting token, by its name, and "#n" for the nth of it
	AgentPrefix   = "agent:"   // one of yaya's own agents, by its strategy
	GatewayPrefix = "gateway:" // a gateway that this kernel is attached to, by its address
	ServerPrefix  = "server:"  // a server that calls tools of others from its sandbox, by its name
)

// Caller identifies the maker of a call. Every surface sets it explicitly, for the
// owner as for others: the zero value is nobody, whose calls are refused.
type Caller struct {
	Principal string
	// Has reports whether the caller has a scope now; nil means none.
	Has func(scope string) bool
	// Behind are further principals for whom the call is made: for a sub-agent, the
	// agents above it, and the client that gave an agent its task. Rules that restrict one of
	// them restrict the call.
	Behind []string
	// BehindHas reports whether one of Behind has a scope, for rules that restrict; nil means
	// none.
	BehindHas func(scope string) bool
	// Servers are the providers whose tools the caller may use; none means all.
	Servers []string
	// Tools are the names of the tools that a sub-agent may call; nil means all.
	Tools []string
	// Via is the surface that a call of [OriginNode] came through on the node that passes it on,
	// and the one through which a client gave an agent its task. Rules about it restrict the call
	// as well.
	Via Origin
	// But is a provider whose tools the caller may not use: its own. "" means none.
	But string
}

// LocalOwner is the user that runs yaya.
var LocalOwner = Caller{Principal: Owner, Has: func(string) bool { return true }}

// May reports whether the caller has a scope.
func (c Caller) May(scope string) bool { return c.Has != nil && c.Has(scope) }

// IsServer reports whether the caller is a server in its sandbox.
func (c Caller) IsServer() bool { return strings.HasPrefix(c.Principal, ServerPrefix) }

// Reaches reports whether the caller may use the tools of a provider, whatever the
// rules say. A caller that is limited to some providers has none of yaya's own
// tools, either.
func (c Caller) Reaches(provider string) bool {
	if c.But != "" && provider == c.But {
		return false
	}
	return len(c.Servers) == 0 || slices.Contains(c.Servers, provider)
}

// Session names the session that holds artifacts, approvals for the session and
// connections to servers for a surface without its own sessions. Each principal has
// its own; the owner's is base.
func (c Caller) Session(base string) string {
	if c.Principal == Owner {
		return base
	}
	sum := sha256.Sum256([]byte(c.Principal))
	return base + "-" + hex.EncodeToString(sum[:16])
}

// MatchPrincipal reports whether a pattern covers a principal. Patterns are those of
// path.Match, except that the slash is an ordinary character: subjects of tokens may
// be URLs. A pattern for a token's name covers every token that has had the name: a
// token that was created again keeps the rules of its name.
func MatchPrincipal(pattern, principal string) bool {
	if pattern == principal {
		return principal != ""
	}
	if strings.HasPrefix(principal, TokenPrefix) && !strings.Contains(pattern, "#") {
		principal, _, _ = strings.Cut(principal, "#")
	}
	ok, err := path.Match(noSlash(pattern), noSlash(principal))
	return ok && err == nil && principal != ""
}

// MatchName reports whether a pattern of rules and profiles covers the name of a tool,
// prompt, server or method. Names of tools have no slash; in those of an extension's
// methods it is an ordinary character.
func MatchName(pattern, name string) bool {
	ok, err := path.Match(noSlash(pattern), noSlash(name))
	return ok && err == nil
}

// noSlash replaces slashes by a byte that occurs in no JSON text and means nothing
// to path.Match.
func noSlash(s string) string { return strings.ReplaceAll(s, "/", "\xff") }

var principalKind = lazyregexp.New(`^(owner$|(device|issuer|token|agent|gateway|server):.|[^:]*[*?[\\])`)

// bareName matches the id of a device without its prefix.
var bareName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// CheckPrincipal returns an error if a pattern can cover no principal.
func CheckPrincipal(pattern string) error {
	if !principalKind().MatchString(pattern) {
		hint := ""
		if strings.EqualFold(pattern, Owner) {
			hint = "; did you mean " + Owner + "?"
		} else if bareName().MatchString(pattern) && !principalKind().MatchString(pattern+":x") {
			hint = "; did you mean device:" + pattern + "?"
		}
		return fmt.Errorf("principal %q is none of owner, device:<id>, issuer:<subject>, token:<name>, agent:<strategy>, gateway:<address> and server:<name>%s", pattern, hint)
	}
	if _, err := path.Match(noSlash(pattern), ""); err != nil {
		return fmt.Errorf("principal %q: %w", pattern, err)
	}
	return nil
}
