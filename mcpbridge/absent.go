package mcpbridge

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Absent returns the configured server that a tool name belongs to by its prefix, if that
// server does not run, with the reason and the remedy. It returns "" for other names. The
// reason includes the refusals of the server's sandbox, unless the caller is itself a server in
// a sandbox.
func (b *Bridge) Absent(name string, caller tool.Caller) (server, why string) {
	prefixOf := func(name string, prefix *string) string {
		if prefix != nil {
			name = *prefix
		}
		if name == "" {
			return ""
		}
		return strings.SplitAfter(feature.QualifiedName(name, "x"), "__")[0]
	}
	is := func(server string, prefix *string) bool {
		p := prefixOf(server, prefix)
		return p != "" && strings.HasPrefix(name, p)
	}
	b.mu.Lock()
	for off, s := range b.off {
		if is(off, s.Prefix) {
			b.mu.Unlock()
			return off, fmt.Sprintf("server %q is disabled, so its tools cannot be called (to start it: yaya mcp enable %s)", off, off)
		}
	}
	b.mu.Unlock()
	for _, inv := range b.InvalidServers() {
		if is(inv.Name, nil) {
			return inv.Name, fmt.Sprintf("server %q cannot be used, so its tools cannot be called: %s", inv.Name, feature.Clean(inv.Err.Error(), 400))
		}
	}
	for _, st := range b.host.Status() {
		b.mu.Lock()
		p := b.providers[st.ID]
		b.mu.Unlock()
		if p == nil || st.State.Usable() {
			continue
		}
		info := p.Info()
		prefix := cmp.Or(info.Prefix, info.ID)
		if info.Bare || !is(st.ID, &prefix) {
			continue
		}
		why := feature.Down(st.ID, st.State, b.masked(cmp.Or(st.Reason, st.LastError)))
		if hint := p.Hint(); hint != "" && !caller.IsServer() {
			why += "; " + hint
		}
		return st.ID, why
	}
	return "", ""
}
