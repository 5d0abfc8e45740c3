package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

// Waiting lists the changes that wait for approval.
func (s *Manager) Waiting() ([]Waiting, error) {
	all, err := s.cfg.Trust.Waiting()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Waiting{}
	for _, w := range all {
		if _, there := s.list[w.Server]; !there {
			continue // what a server was that is gone
		}
		out = append(out, Waiting{Server: w.Server, Reason: w.Reason, Tools: w.Tools, Instructions: w.Instructions, Digest: w.Digest()})
	}
	for _, x := range s.wait {
		lines := []string{}
		for _, i := range x.Folder.Items {
			lines = append(lines, i.String())
		}
		for _, i := range x.Folder.Allowed {
			lines = append(lines, "you have allowed more to "+i.String())
		}
		out = append(out, Waiting{
			Server: x.Server.Name, Runs: Brings(x.Server, s.cfg.Sandboxes), Config: s.row(x.Server).Config, Digest: x.Folder.Digest(),
			Reason: fmt.Sprintf("the folder %s brings it, and %v; approving trusts the folder with all of this: %s", x.Folder.Folder, x.Cause, strings.Join(lines, "; ")),
		})
	}
	return out, nil
}

// Approve approves, on behalf of a principal, the changes with that digest: those of the named
// tools, or all of them if none is named.
func (s *Manager) Approve(ctx context.Context, server, digest, by string, tools []string) error {
	if done, err := s.approveProject(server, digest, by); done || err != nil {
		return err
	}
	all, err := s.cfg.Trust.Waiting()
	if err != nil {
		return err
	}
	known := false
	for _, w := range all {
		if w.Server != server {
			continue
		}
		known = true
		if w.Digest() != digest {
			continue
		}
		for _, name := range tools {
			if !slices.ContainsFunc(w.Tools, func(t trust.WaitingTool) bool { return t.Name == name }) {
				return refused("the tool %q does not wait", name)
			}
		}
		err := s.cfg.Trust.Approve(w, tools...)
		if errors.Is(err, trust.ErrStale) {
			return fmt.Errorf("%w: %s now offers something else", ErrStale, server)
		}
		if errors.Is(err, trust.ErrDamaged) {
			return refused("%v", err)
		}
		if err == nil {
			if s.cfg.Host != nil {
				s.cfg.Host.Boundary(ctx) // it looks again
			}
			s.changed(true)
		}
		return err
	}
	if known {
		return fmt.Errorf("%w: %s now offers something else", ErrStale, server)
	}
	return &told{ErrUnknown, fmt.Sprintf("no changes of server %q wait for approval", server)}
}

// approveProject trusts the folder that brings a server, if one of that name waits.
func (s *Manager) approveProject(server, digest, by string) (done bool, err error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.wait, func(x Pending) bool { return x.Server.Name == server })
	if i < 0 {
		s.mu.Unlock()
		return false, nil
	}
	at := s.wait[i].Folder.Folder
	s.mu.Unlock()
	_, err = s.cfg.Folders.Trust(at, digest, by)
	if errors.Is(err, folder.ErrChanged) {
		err = fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err == nil, err
}

// reconsider starts the servers of a folder that has been trusted, and stops those of
// one that no longer is.
func (s *Manager) reconsider(dir string) {
	if !s.cfg.Own || s.cfg.Bridge == nil {
		return
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if here, err := folder.Resolve(s.cfg.Here); err != nil || here != dir {
		return
	}
	var now Loaded
	s.mu.Lock()
	for _, x := range s.list {
		if !x.Project || x.Package != "" {
			now.Servers = append(now.Servers, x)
		}
	}
	s.mu.Unlock()
	mine := len(now.Servers)
	if err := now.Project(dir, s.cfg.Folders); err != nil {
		s.cfg.Log.Error().Err(err).Str("folder", dir).Msg("the servers of a folder cannot be looked at; none of them runs")
	}
	for _, w := range now.Warnings {
		s.cfg.Log.Warn().Msg(w)
	}
	var stop, start []servers.Server
	s.mu.Lock()
	for name, x := range s.list {
		if x.Project && x.Package == "" && !slices.ContainsFunc(now.Servers, func(y servers.Server) bool { return y.Name == name && y.Project }) {
			stop = append(stop, x)
			delete(s.list, name)
		}
	}
	for _, x := range now.Servers[mine:] {
		if _, runs := s.list[x.Name]; !runs || s.brought[x.Name] != now.brought[x.Name] {
			start = append(start, x) // it replaces one that was started as something else
		}
		s.list[x.Name] = x
	}
	s.wait, s.brought = now.Pending, now.brought
	s.mu.Unlock()
	for _, x := range stop {
		s.cfg.Bridge.Remove(x.Name)
	}
	for _, x := range now.Invalid { // with what helps, where servers are listed
		s.cfg.Bridge.Remove(x.Name)
		s.cfg.Bridge.Invalid(x)
	}
	for _, x := range start {
		s.run(context.Background(), x)
	}
	s.changed(true)
}
