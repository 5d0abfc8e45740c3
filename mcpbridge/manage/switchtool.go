package manage

import (
	"context"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// SwitchTool offers a tool of a server, or withholds it, in the configuration too, and starts
// the server again. It changes only the lists of tools of the entry. It calls record right
// before something changes, and changes nothing if that fails.
func (s *Manager) SwitchTool(ctx context.Context, name, tool string, on bool, record func() error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	_, known := s.list[name]
	err, gone := s.mayChange(name), s.unknown(name)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if !known {
		return gone
	}
	data, err := s.read()
	if err != nil {
		return err
	}
	if err := s.asRead(data, name); err != nil {
		return err
	}
	x, _, err := entryIn(s.cfg.File, data, name)
	if err != nil {
		return err
	}
	if x == nil {
		return &told{ErrUnknown, fmt.Sprintf("the server %q is not in %s, where its tools could be switched", name, s.cfg.File)}
	}
	if x.Allows(tool) == on {
		return nil
	}
	next := switched(*x, tool, on)
	if next.Allows(tool) != on {
		return refused("a pattern in disabled_tools of %q in %s matches the tool %q: change the pattern there", name, s.cfg.File, tool)
	}
	out, err := servers.Set(s.cfg.File, data, next)
	if err != nil {
		return refused("%v", err)
	}
	if err := record(); err != nil {
		return err
	}
	if err := s.write(out); err != nil {
		return err
	}
	s.take(ctx, next)
	return nil
}

// switched returns a server whose lists name a tool, or no longer do.
func switched(x servers.Server, tool string, on bool) servers.Server {
	is := func(pattern string) bool { return pattern == tool }
	x.ExcludeTools = slices.DeleteFunc(slices.Clone(x.ExcludeTools), is)
	switch {
	case !on:
		x.ExcludeTools = append(x.ExcludeTools, tool)
	case !x.Allows(tool) && len(x.IncludeTools) > 0:
		x.IncludeTools = append(slices.Clone(x.IncludeTools), tool)
	}
	return x
}
