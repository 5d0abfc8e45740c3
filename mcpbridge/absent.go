package mcpbridge

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/feature"
)

// Absent returns the server whose tool a name would be, going by its prefix, if that
// server is configured and does not run, and says why the tool cannot be called and
// what to do. It returns "" for a name that is nobody's.
func (b *Bridge) Absent(tool string) (server, why string) {
	prefixOf := func(name string, prefix *string) string {
		if prefix != nil {
			name = *prefix
		}
		if name == "" {
			return ""
		}
		return strings.SplitAfter(feature.QualifiedName(name, "x"), "__")[0]
	}
	is := func(name string, prefix *string) bool {
		p := prefixOf(name, prefix)
		return p != "" && strings.HasPrefix(tool, p)
	}
	b.mu.Lock()
	for name, s := range b.off {
		if is(name, s.Prefix) {
			b.mu.Unlock()
			return name, fmt.Sprintf("server %q is disabled, and its tools cannot be called: start it with: yaya mcp enable %s", name, name)
		}
	}
	b.mu.Unlock()
	for _, inv := range b.InvalidServers() {
		if is(inv.Name, nil) {
			return inv.Name, fmt.Sprintf("server %q cannot be used, and its tools cannot be called: %s", inv.Name, feature.Clean(inv.Err.Error(), 400))
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
		return st.ID, feature.Down(st.ID, st.State, b.masked(cmp.Or(st.Reason, st.LastError)))
	}
	return "", ""
}
