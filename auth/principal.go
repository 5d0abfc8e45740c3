package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/control"
)

// Scope is a right, resource:action.
type Scope string

// The scopes.
const (
	AgentsRead      Scope = "agents:read"      // agents, kernels, the state of the cluster
	SessionsRead    Scope = "sessions:read"    // to watch sessions
	SessionsWrite   Scope = "sessions:write"   // to converse: send messages, start agents, interrupt
	AgentsKill      Scope = "agents:kill"      // to end agents
	ApprovalsAnswer Scope = "approvals:answer" // to decide what tools may do
	MemoryRead      Scope = "memory:read"
	SkillsInvoke    Scope = "skills:invoke"
	ToolsCall       Scope = "tools:call"      // MCP
	KernelAttach    Scope = "kernel:attach"   // to be a kernel of this gateway: its agents, its skills
	DevicesRead     Scope = "devices:read"    //
	DevicesApprove  Scope = "devices:approve" // to enroll others, with no more rights than one's own
	DevicesManage   Scope = "devices:manage"  // to revoke, to change scopes, to rotate keys
	ConfigRead      Scope = "config:read"
	ConfigWrite     Scope = "config:write"
	AuditRead       Scope = "audit:read"
	MetricsRead     Scope = "metrics:read"
)

// AllScopes are all scopes, which an administrator has.
func AllScopes() []Scope {
	return []Scope{
		AgentsRead, SessionsRead, SessionsWrite, AgentsKill, ApprovalsAnswer, MemoryRead, SkillsInvoke, ToolsCall, KernelAttach,
		DevicesRead, DevicesApprove, DevicesManage, ConfigRead, ConfigWrite, AuditRead, MetricsRead,
	}
}

// ScopeNames are the names of all scopes.
func ScopeNames() []string {
	all := AllScopes()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return names
}

// DefaultScopes are the scopes of a new device: to read and to converse.
func DefaultScopes() []Scope { return []Scope{AgentsRead, SessionsRead, SessionsWrite, MemoryRead} }

// ParseScopes reads scopes as people write them: separated by blanks or commas,
// "admin" for all of them, "default" for [DefaultScopes]. The result is sorted and
// has no duplicates.
func ParseScopes(words ...string) ([]Scope, error) {
	var out []Scope
	for _, w := range strings.FieldsFunc(strings.Join(words, " "), func(r rune) bool { return r == ' ' || r == ',' }) {
		switch w {
		case "admin":
			out = append(out, AllScopes()...)
		case "default":
			out = append(out, DefaultScopes()...)
		default:
			if !slices.Contains(AllScopes(), Scope(w)) {
				return nil, fmt.Errorf("%w: unknown scope %q; scopes are default, admin, %s", ErrBadRequest, w, joinScopes(AllScopes(), ", "))
			}
			out = append(out, Scope(w))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func joinScopes(scopes []Scope, sep string) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, sep)
}

// Kind is the kind of a principal.
type Kind int

// The kinds.
const (
	Anonymous Kind = iota // nobody: the caller is unknown
	Owner                 // the user that runs yaya, on this machine
	Device                // a device with a token
	External              // whoever an external issuer's token is about
	Lasting               // who has a lasting token, see [Authority.CreateLasting]
	Server                // an MCP server that calls from its sandbox, see [ServerNamed]
)

// Principal is the sender of a request. The zero value is [Anonymous].
type Principal struct {
	Kind Kind
	// ID is the device's id, issuer|subject of an external token, the name of a lasting
	// one, with "#" and a number if earlier tokens have had it, or a server's name.
	ID string

	authority *Authority // of a device or a lasting token: its rights are looked up, never cached
	claims    *claimsOf
	lasting   *lasting
}

// LocalOwner is the user that runs yaya.
var LocalOwner = Principal{Kind: Owner}

// ServerNamed is an MCP server that calls yaya from its sandbox, by its name: it may call
// tools, and nothing else.
func ServerNamed(name string) Principal { return Principal{Kind: Server, ID: name} }

// Actor names the principal in the audit log.
func (p Principal) Actor() string {
	switch p.Kind {
	case Owner:
		return "owner"
	case Anonymous:
		return "anonymous"
	case Lasting, Server:
		return p.Name() // a device may have an id like it
	case Device, External:
	}
	return p.ID
}

// Name returns the name of the principal in rules and profiles, which also
// separates its sessions from those of others; "" is nobody.
func (p Principal) Name() string {
	switch p.Kind {
	case Owner:
		return control.Owner
	case Device:
		return "device:" + p.ID
	case Lasting:
		return "token:" + p.ID
	case External:
		// All tokens come from the one configured issuer.
		_, subject, _ := strings.Cut(p.ID, "|")
		return "issuer:" + subject
	case Server:
		return "server:" + p.ID
	case Anonymous:
	}
	return ""
}

// Has reports whether the principal has a scope now.
func (p Principal) Has(scope string) bool { return Allow(p, Scope(scope)) == nil }

// Scopes returns the principal's present scopes: for a device or a lasting token
// those that the store grants, whatever its token claims.
func (p Principal) Scopes() []Scope {
	switch p.Kind {
	case Owner:
		return AllScopes()
	case Device:
		return p.authority.scopesOf(p)
	case Lasting:
		return p.authority.lastingScopes(p)
	case External, Server:
		return []Scope{ToolsCall}
	case Anonymous:
	}
	return nil
}

// ErrForbidden reports that a principal lacks a right.
var ErrForbidden = errors.New("that is not allowed")

// Allow authorizes a request of a principal: it returns nil, or an error that wraps
// [ErrForbidden] and names the scope. Every surface calls it.
func Allow(p Principal, s Scope) error {
	if p.Kind == Owner {
		return nil
	}
	if slices.Contains(p.Scopes(), s) {
		return nil
	}
	return fmt.Errorf("%w: it needs the scope %s", ErrForbidden, s)
}

// within returns an error if a principal grants scopes that it does not have.
func within(p Principal, scopes []Scope) error {
	for _, s := range scopes {
		if err := Allow(p, s); err != nil {
			return fmt.Errorf("nobody can give away rights that they do not have: %w", err)
		}
	}
	return nil
}

// principalKey is the one key under which a context has who a request is from.
type principalKey struct{}

// WithPrincipal returns a context that says who a request is from. The doors alone call
// it: the listener, a server's endpoint, and a command that serves itself.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// FromContext returns the sender of a request: nobody, unless it has been
// authenticated.
func FromContext(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// ErrNobody is returned by [Established] for a request without a principal.
var ErrNobody = errors.New("the caller of this request is not established")

// Established returns [ErrNobody] for a request that is nobody's. Every handler behind a
// door asks it first, so that a route without its guard answers nobody, and not everybody.
func Established(ctx context.Context) error {
	if FromContext(ctx).Kind == Anonymous {
		return ErrNobody
	}
	return nil
}
