package manage

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// All returns the servers that are configured, by name, with those that wait for a folder.
func (s *Manager) All() []servers.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Collect(maps.Values(s.list))
	for _, x := range s.wait {
		out = append(out, x.Server)
	}
	slices.SortFunc(out, func(a, b servers.Server) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// namedSecret stands for the value of a secret where only what is missing counts: whoever
// configures a server is told what its command line comes to, and may not know secrets.
func (s *Manager) namedSecret(name string) (string, error) {
	if _, err := s.cfg.Secret(name); err != nil {
		return "", err
	}
	return "${secret:" + name + "}", nil
}

// Without names the servers that refer to a secret and do not run with what it is now: all of
// them if it is not set.
func (s *Manager) Without(secret string) (names []string) {
	_, err := s.cfg.Secret(secret)
	for _, x := range s.referring(secret) {
		if err != nil || !s.cfg.Bridge.Runs(x) {
			names = append(names, x.Name)
		}
	}
	return names
}

// referring returns the servers that refer to a secret and are to run. Telling what one comes to
// reads files and secrets, and whoever asks how the servers are does not wait for that.
func (s *Manager) referring(secret string) (out []servers.Server) {
	if s.cfg.Bridge == nil || !s.cfg.Bridge.Loaded() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range maps.Values(s.list) {
		if !x.Disabled && slices.Contains(x.SecretNames(), secret) {
			out = append(out, x)
		}
	}
	return out
}

// SecretChanged starts the servers again that refer to a secret and come to something else
// with it, as a change of their configuration does, and returns their names.
func (s *Manager) SecretChanged(ctx context.Context, secret string) []string {
	s.changing.Lock()
	defer s.changing.Unlock()
	out := []string{}
	var work sync.WaitGroup
	for _, x := range s.referring(secret) {
		if s.cfg.Bridge.Runs(x) {
			continue
		}
		out = append(out, x.Name)
		work.Go(func() { s.run(ctx, x) })
	}
	work.Wait()
	slices.Sort(out)
	return out
}
