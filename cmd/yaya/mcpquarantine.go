package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

// Waiting implements [admin.Servers].
func (s *serverAdmin) Waiting() ([]admin.Waiting, error) {
	all, err := s.a.trust.Waiting()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []admin.Waiting{}
	for _, w := range all {
		if _, there := s.list[w.Server]; !there {
			continue // what a server was that is gone
		}
		row := admin.Waiting{Server: w.Server, Reason: w.Reason, Tools: []admin.WaitingTool{}, Instructions: w.Instructions, Digest: w.Digest()}
		for _, t := range w.Tools {
			row.Tools = append(row.Tools, admin.WaitingTool{Name: t.Name, New: t.New, Wording: t.Wording, Diff: t.Diff})
		}
		out = append(out, row)
	}
	for _, x := range s.wait {
		lines := []string{}
		for _, i := range x.folder.Items {
			lines = append(lines, i.String())
		}
		out = append(out, admin.Waiting{
			Server: x.server.Name, Runs: brings(x.server), Config: s.row(x.server).Config, Tools: []admin.WaitingTool{}, Digest: x.folder.Digest(),
			Reason: fmt.Sprintf("the folder %s brings it, which is not trusted; approving trusts the folder with all of this: %s", x.folder.Folder, strings.Join(lines, "; ")),
		})
	}
	return out, nil
}

// Approve implements [admin.Servers].
func (s *serverAdmin) Approve(ctx context.Context, server, digest string, tools []string) error {
	if done, err := s.approveProject(server, digest, auth.FromContext(ctx).Actor()); done || err != nil {
		return err
	}
	all, err := s.a.trust.Waiting()
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
		err := s.a.trust.Approve(w, tools...)
		if errors.Is(err, trust.ErrStale) {
			return fmt.Errorf("%w: %s now offers something else", admin.ErrStale, server)
		}
		if err == nil {
			if s.a.host != nil {
				s.a.host.Boundary(ctx) // it looks again
			}
			s.a.changed(admin.PartServers, admin.PartTools, admin.PartQuarantine)
		}
		return err
	}
	if known {
		return fmt.Errorf("%w: %s now offers something else", admin.ErrStale, server)
	}
	return fmt.Errorf("%w: nothing of %q waits for approval", admin.ErrUnknown, server)
}

// approveProject trusts the folder that brings a server, if one of that name waits.
func (s *serverAdmin) approveProject(server, digest, by string) (done bool, err error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.wait, func(x pending) bool { return x.server.Name == server })
	if i < 0 {
		s.mu.Unlock()
		return false, nil
	}
	at := s.wait[i].folder.Folder
	s.mu.Unlock()
	_, err = s.a.folders.Trust(at, digest, by)
	if errors.Is(err, folder.ErrChanged) {
		err = fmt.Errorf("%w: %w", admin.ErrStale, err)
	}
	return err == nil, err
}

// reconsider starts the servers of a folder that has been trusted, and stops those of
// one that no longer is.
func (s *serverAdmin) reconsider(dir string) {
	if !s.own || s.a.bridge == nil {
		return
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if here, err := folder.Resolve(s.here); err != nil || here != dir {
		return
	}
	var now loaded
	s.mu.Lock()
	for _, x := range s.list {
		if !x.Project {
			now.servers = append(now.servers, x)
		}
	}
	s.mu.Unlock()
	mine := len(now.servers)
	if err := now.project(dir, s.a.folders); err != nil {
		s.a.log.Error().Err(err).Str("folder", dir).Msg("the servers of a folder cannot be looked at; none of them runs")
	}
	for _, w := range now.warnings {
		s.a.log.Warn().Msg(w)
	}
	var stop, start []servers.Server
	s.mu.Lock()
	for name, x := range s.list {
		if x.Project && !slices.ContainsFunc(now.servers, func(y servers.Server) bool { return y.Name == name && y.Project }) {
			stop = append(stop, x)
			delete(s.list, name)
		}
	}
	for _, x := range now.servers[mine:] {
		if _, runs := s.list[x.Name]; !runs || s.brought[x.Name] != now.brought[x.Name] {
			start = append(start, x) // it replaces one that was started as something else
		}
		s.list[x.Name] = x
	}
	s.wait, s.brought = now.pending, now.brought
	s.mu.Unlock()
	for _, x := range stop {
		s.a.bridge.Remove(x.Name)
	}
	for _, x := range now.invalid { // with what helps, where servers are listed
		s.a.bridge.Remove(x.Name)
		s.a.bridge.Invalid(x)
	}
	for _, x := range start {
		s.run(context.Background(), x)
	}
	s.a.changed(admin.PartServers, admin.PartTools, admin.PartQuarantine)
}
