package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/gateway/admin"
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
		row := admin.Waiting{Server: w.Server, Reason: w.Reason, Tools: []admin.WaitingTool{}, Digest: w.Digest()}
		for _, t := range w.Tools {
			row.Tools = append(row.Tools, admin.WaitingTool{Name: t.Name, New: t.New, Diff: t.Diff})
		}
		out = append(out, row)
	}
	for _, x := range s.wait {
		out = append(out, admin.Waiting{Server: x.server.Name, Reason: "the project's " + x.entry.File + " brings it", Runs: x.server.Runs(), Config: s.row(x.server).Config, Tools: []admin.WaitingTool{}, Digest: x.digest()})
	}
	return out, nil
}

func (x pending) digest() string {
	sum := sha256.Sum256(append([]byte(x.entry.File+"\x00"+x.entry.Server+"\x00"), x.entry.Config...))
	return hex.EncodeToString(sum[:])
}

// Approve implements [admin.Servers].
func (s *serverAdmin) Approve(ctx context.Context, server, digest string, tools []string) error {
	if done, err := s.approveProject(ctx, server, digest); done || err != nil {
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
			return fmt.Errorf("%w: %s offers other things by now", admin.ErrStale, server)
		}
		if err == nil {
			s.a.host.Boundary(ctx) // it looks again
			s.a.changed(admin.PartServers, admin.PartTools, admin.PartQuarantine)
		}
		return err
	}
	if known {
		return fmt.Errorf("%w: %s offers other things by now", admin.ErrStale, server)
	}
	return fmt.Errorf("%w: nothing of %q waits for approval", admin.ErrUnknown, server)
}

// approveProject starts a server that a project brings, if one of that name waits.
func (s *serverAdmin) approveProject(ctx context.Context, server, digest string) (done bool, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	i := slices.IndexFunc(s.wait, func(x pending) bool { return x.server.Name == server })
	if i < 0 {
		s.mu.Unlock()
		return false, nil
	}
	x := s.wait[i]
	s.mu.Unlock()
	if x.digest() != digest {
		return false, fmt.Errorf("%w: %s is configured in another way by now", admin.ErrStale, server)
	}
	if err := s.a.trust.ApproveProject(x.entry); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.wait = slices.Delete(slices.Clone(s.wait), i, i+1) // changing has kept it as it was
	s.list[server] = x.server
	s.mu.Unlock()
	s.run(ctx, x.server)
	s.a.changed(admin.PartQuarantine)
	return true, nil
}
