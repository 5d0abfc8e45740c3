package downstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Profile selects the servers and tools that a client sees. Its zero value shows all.
type Profile struct {
	// Servers are patterns (path.Match) of the visible servers; none means all. yaya's own
	// tools are always visible.
	Servers []string `json:"servers,omitempty"`
	// Tools are patterns for the listed names of tools and prompts; a pattern that starts with
	// "!" excludes. None means all.
	Tools []string `json:"tools,omitempty"`
	// Search shows tools to search, describe and call the others, instead of the tools
	// themselves.
	Search bool `json:"search,omitempty"`
	// Principal, Scope and Group name the callers that the profile is for, by patterns as in
	// approval.rules; one match is enough. A caller that any profile names can use only the
	// profiles that name it. A profile without all three is for callers that no profile names.
	Principal []string `json:"principal,omitempty"`
	Scope     []string `json:"scope,omitempty"`
	Group     []string `json:"group,omitempty"`

	members []string // of the groups
	// only are the servers that its caller is limited to; none means all.
	only []string
	// node says that its caller is on another node, which presents the server by itself.
	node bool
	// but is the server that is the caller, whose own tools are hidden from it; "" for none.
	but string
}

// The profiles that need no configuration.
const (
	ProfileAll    = "all"
	ProfileSearch = "search"
)

// ParseProfiles parses the setting profiles: an object of profiles by name. callers are the
// groups and scopes that they may name.
func ParseProfiles(raw json.RawMessage, callers approval.Callers) (map[string]Profile, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("profiles must be a JSON object of profiles by name: %w", err)
	}
	out := make(map[string]Profile, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "" || name == ProfileAll || name == ProfileSearch || strings.ContainsAny(name, "/?#%") {
			return nil, fmt.Errorf("%q cannot be the name of a profile", name)
		}
		p, err := parseProfile(all[name], callers)
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", name, err)
		}
		out[name] = p
	}
	return out, nil
}

func parseProfile(raw json.RawMessage, callers approval.Callers) (p Profile, err error) {
	err = members.Decode(raw, &p)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		switch wrong.Field {
		case "":
			return p, errors.New(`a profile must be a JSON object, such as {"servers":["fs"]}`)
		case "search":
			return p, fmt.Errorf("search must be true or false, not a JSON %s", wrong.Value)
		}
		return p, fmt.Errorf(`%s must be a JSON list of strings, such as ["x"], not a %s`, wrong.Field, wrong.Value)
	}
	if err != nil {
		return p, err
	}
	for _, pattern := range slices.Concat(p.Servers, p.Tools) {
		if _, err := path.Match(strings.TrimPrefix(pattern, "!"), ""); err != nil {
			return p, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	return p, p.resolve(callers)
}

// resolve checks the callers that a profile names, and looks up its groups.
func (p *Profile) resolve(callers approval.Callers) error {
	for _, pattern := range p.Principal {
		if err := tool.CheckPrincipal(pattern); err != nil {
			return err
		}
	}
	for _, scope := range p.Scope {
		if err := callers.CheckScope(scope); err != nil {
			return err
		}
	}
	for _, group := range p.Group {
		members, err := callers.Members(group)
		if err != nil {
			return err
		}
		p.members = append(p.members, members...)
	}
	return nil
}

// open reports whether the profile names no caller.
func (p *Profile) open() bool { return len(p.Principal)+len(p.Scope)+len(p.Group) == 0 }

// isOf reports whether the profile names a caller.
func (p *Profile) isOf(who tool.Caller) bool {
	is := func(pattern string) bool { return tool.MatchPrincipal(pattern, who.Principal) }
	return slices.ContainsFunc(p.Principal, is) || slices.ContainsFunc(p.members, is) || slices.ContainsFunc(p.Scope, who.May)
}

// profile is a profile in use, with its rendered view.
type profile struct {
	Profile
	name string // with the servers that its callers are limited to
	path string // the requested name
	view atomic.Pointer[view]
}

// server reports whether a server is visible.
func (p *profile) server(name string) bool {
	if len(p.only) > 0 && !slices.Contains(p.only, name) || p.but != "" && p.but == name {
		return false
	}
	return len(p.Servers) == 0 || name == "" || slices.ContainsFunc(p.Servers, func(pattern string) bool { return tool.MatchName(pattern, name) })
}

// named reports whether a tool or prompt with that name is visible.
func (p *profile) named(name string) bool {
	seen := !slices.ContainsFunc(p.Tools, func(s string) bool { return !strings.HasPrefix(s, "!") })
	for _, pattern := range p.Tools {
		if not, ok := strings.CutPrefix(pattern, "!"); ok {
			if tool.MatchName(not, name) {
				return false
			}
		} else if tool.MatchName(pattern, name) {
			seen = true
		}
	}
	return seen
}

// tool reports whether a tool is visible.
func (p *profile) tool(def *tool.Definition) bool {
	return !def.ForAgents && p.server(def.Identity.Provider) && p.named(def.Name)
}

// ErrNoProfile says that a profile does not exist.
var ErrNoProfile = errors.New("there is no profile")

// errNotYours says that a caller may not use a profile.
var errNotYours = errors.New("this profile is not for you")

// profile returns the profile with a name for a caller, or the caller's default if name is "".
// The owner can use all profiles. Other callers can use the profiles that name them, by default
// the first by name; only a caller that no profile names can use the open ones.
func (s *Server) profile(name string, who tool.Caller) (*profile, error) {
	var known map[string]Profile
	if s.cfg.Profiles != nil && (who.Principal != tool.Owner || !builtin(name)) {
		var err error
		if known, err = s.cfg.Profiles(); err != nil {
			return nil, fmt.Errorf("the profiles cannot be read: %w", err)
		}
	}
	want, ok := known[name]
	if who.Principal != tool.Owner {
		first := ""
		for n, p := range known {
			if p.isOf(who) && (first == "" || n < first) {
				first = n
			}
		}
		switch {
		case first != "" && name == "":
			name, want, ok = first, known[first], true
		case ok && (want.isOf(who) || (first == "" && want.open())):
		case ok, first != "" && builtin(name):
			return nil, errNotYours
		}
	}
	switch {
	case ok:
	case name == ProfileSearch:
		want.Search = true
	case builtin(name) && len(who.Servers) == 0 && who.But == "":
		return s.all, nil
	case builtin(name):
	default:
		return nil, ErrNoProfile
	}
	// A caller limited to some servers has a separate view of the profile: sessions do not move
	// // between the two.
	path := name
	if len(who.Servers) > 0 {
		want.only = who.Servers
		name = strings.Join(append([]string{name}, who.Servers...), "\x00")
	}
	if who.Via != "" {
		want.node, want.Search = true, false
		name += "\x00\x00\x00"
	}
	if who.But != "" {
		want.but = who.But
		name += "\x00\x00" + who.But
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.profiles[name]; p != nil && reflect.DeepEqual(p.Profile, want) {
		return p, nil
	}
	if len(s.profiles) >= maxProfiles { // rebuilt on demand
		clear(s.profiles)
	}
	p := &profile{Profile: want, name: name, path: path}
	s.profiles[name] = p
	return p, nil
}

// maxProfiles bounds the profiles that are kept rendered.
const maxProfiles = 512

// profileNames lists the profiles that a caller can name, for errors.
func (s *Server) profileNames(who tool.Caller) string {
	names := []string{ProfileAll, ProfileSearch}
	if s.cfg.Profiles != nil {
		known, err := s.cfg.Profiles()
		if err != nil { // the caller gets the same refusal
			return strings.Join(names, ", ")
		}
		names = append(names, slices.Sorted(maps.Keys(known))...)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, err := s.profile(name, who)
		return err != nil
	})
	return strings.Join(names, ", ")
}

// builtin reports whether a name is that of a profile that needs no configuration.
func builtin(name string) bool {
	return name == "" || name == ProfileAll || name == ProfileSearch
}
