package downstream

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Profile says what of everything a client sees. Its zero value shows all.
type Profile struct {
	// Servers are patterns (path.Match) of the servers that are seen; none means
	// all. yaya's own tools are always seen.
	Servers []string `json:"servers,omitempty"`
	// Tools are patterns of the names of tools and prompts, as they are listed;
	// one that starts with "!" excludes. None means all.
	Tools []string `json:"tools,omitempty"`
	// Search shows tools to search, describe and call the others with, instead of
	// the tools themselves.
	Search bool `json:"search,omitempty"`
}

// The profiles that need no configuration.
const (
	ProfileAll    = "all"
	ProfileSearch = "search"
)

// ParseProfiles reads the value of profiles: an object of profiles by name.
func ParseProfiles(raw json.RawMessage) (map[string]Profile, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	var out map[string]Profile
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	for name, p := range out {
		if name == "" || name == ProfileAll || name == ProfileSearch || strings.ContainsAny(name, "/?#%") {
			return nil, fmt.Errorf("profiles: %q cannot be the name of a profile", name)
		}
		for _, pattern := range slices.Concat(p.Servers, p.Tools) {
			if _, err := path.Match(strings.TrimPrefix(pattern, "!"), ""); err != nil {
				return nil, fmt.Errorf("profiles: %s: pattern %q: %w", name, pattern, err)
			}
		}
	}
	return out, nil
}

// profile is a profile in use, with what it looks like.
type profile struct {
	Profile
	name string
	view atomic.Pointer[view]
}

// server reports whether a server is seen.
func (p *profile) server(name string) bool {
	return len(p.Servers) == 0 || name == "" || slices.ContainsFunc(p.Servers, func(pattern string) bool { return matches(pattern, name) })
}

// named reports whether something of that name is seen.
func (p *profile) named(name string) bool {
	seen := !slices.ContainsFunc(p.Tools, func(s string) bool { return !strings.HasPrefix(s, "!") })
	for _, pattern := range p.Tools {
		if not, ok := strings.CutPrefix(pattern, "!"); ok {
			if matches(not, name) {
				return false
			}
		} else if matches(pattern, name) {
			seen = true
		}
	}
	return seen
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// tool reports whether a tool is seen.
func (p *profile) tool(def *tool.Definition) bool {
	return !def.ForAgents && p.server(def.Identity.Provider) && p.named(def.Name)
}

// profile returns the profile of a name, nil when there is none.
func (s *Server) profile(name string) (*profile, error) {
	var want Profile
	switch name {
	case "", ProfileAll:
		return s.all, nil
	case ProfileSearch:
		want.Search = true
	default:
		if s.cfg.Profiles == nil {
			return nil, nil
		}
		known, err := s.cfg.Profiles()
		if err != nil {
			return nil, err
		}
		var ok bool
		if want, ok = known[name]; !ok {
			return nil, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.profiles[name]; p != nil && reflect.DeepEqual(p.Profile, want) {
		return p, nil
	}
	p := &profile{Profile: want, name: name}
	s.profiles[name] = p
	return p, nil
}
