package feature

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// discover lists the tools and registers the valid ones. It returns a diagnostic
// when it left some out. If a live provider fails meanwhile, its tools have been
// withdrawn and stay so.
func (s *supervisor) discover(ctx context.Context, live bool) (degraded string, err error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	s.mu.Lock()
	s.dirty = false
	if live { // the first change after a start is handled without delay
		s.lastList = time.Now()
	}
	s.mu.Unlock()

	var found []Tool
	var warnings []string
	err = s.guard("discover", func() (err error) {
		found, warnings, err = s.p.Discover(ctx)
		return err
	})
	if err == nil && live && !s.usable.Load() {
		err = errors.New("the provider failed meanwhile")
	}
	if err != nil {
		return "", err
	}
	if len(found) > MaxTools {
		warnings = append(warnings, fmt.Sprintf("it lists %d tools; only the first %d are offered", len(found), MaxTools))
		found = found[:MaxTools]
	}
	next := make(map[Tool]*provided, len(found))
	tools := make([]tool.Provided, 0, len(found))
	seen := map[string]bool{}
	offered := 0
	for _, t := range found {
		p := s.byTool[t]
		if p == nil {
			def, err := define(s.info, t.Spec())
			if err != nil {
				warnings = append(warnings, err.Error())
				continue
			}
			p = &provided{s: s, def: def, tool: t, withheld: t.Spec().Withheld}
		}
		if seen[p.def.Name] {
			warnings = append(warnings, fmt.Sprintf("tool %s is listed twice; the first one counts", p.def.Name))
			continue
		}
		seen[p.def.Name] = true
		next[t] = p
		tools = append(tools, tool.Provided{Tool: p, Withheld: p.withheld})
	}
	for _, err := range s.host.cfg.Registry.Replace(s.info.ID, tools) {
		warnings = append(warnings, err.Error())
	}
	for e := range s.host.cfg.Registry.Snapshot().All() { // names can be taken
		if e.Def.Identity.Provider == s.info.ID {
			offered++
		}
	}
	s.mu.Lock()
	s.byTool, s.tools = next, tools
	s.st.Tools = offered
	s.mu.Unlock()
	for _, w := range warnings[:min(len(warnings), 8)] {
		s.addDiagnostic(w)
	}
	if len(warnings) == 0 {
		return "", nil
	}
	if len(warnings) > 1 {
		return fmt.Sprintf("%s (and %d more)", Clean(warnings[0], 200), len(warnings)-1), nil
	}
	return Clean(warnings[0], 200), nil
}

// needsBoundary reports whether a boundary has anything to do or wait for.
func (s *supervisor) needsBoundary() bool {
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	if !started {
		return time.Since(s.born) < s.host.cfg.StartGrace
	}
	return s.due() || s.revived()
}

// revived reports whether the provider has failed and another attempt makes sense.
func (s *supervisor) revived() bool {
	s.mu.Lock()
	state := s.st.State
	s.mu.Unlock()
	r, ok := s.p.(Reviver)
	return ok && state == Failed && r.Revived()
}

// due reports whether the tools have to be discovered again.
func (s *supervisor) due() bool {
	stale, ok := s.p.(Stale)
	ok = ok && stale.Stale()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.State.Usable() && (ok || (s.dirty && time.Since(s.lastList) >= discoverInterval))
}

func (s *supervisor) boundary(ctx context.Context) {
	s.mu.Lock()
	first := !s.started
	s.mu.Unlock()
	if first {
		ctx, cancel := context.WithDeadline(ctx, s.born.Add(s.host.cfg.StartGrace))
		defer cancel()
		s.settled(ctx)
		return
	}
	if s.revived() {
		ctx, cancel := context.WithTimeout(ctx, s.host.cfg.StartGrace)
		defer cancel()
		_ = s.await(ctx) // the reason is part of its state
		return
	}
	if !s.due() { // the first start ended just now, or another boundary was first
		return
	}
	ctx, cancel := context.WithTimeout(ctx, boundaryTimeout)
	defer cancel()
	degraded, err := s.discover(ctx, true)
	switch {
	case err != nil:
		s.adjust(Degraded, fmt.Sprintf("its tools changed, but listing them failed: %v", err))
	case degraded != "":
		s.adjust(Degraded, degraded)
	default:
		s.adjust(Ready, "")
	}
}

// settled waits until the first start is over.
func (s *supervisor) settled(ctx context.Context) {
	for {
		s.mu.Lock()
		over, moved := s.started, s.moved
		s.mu.Unlock()
		if over {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		case <-s.done:
			return
		}
	}
}
