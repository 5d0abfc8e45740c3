package daemon

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/installed"
)

// loadGuards loads the plugins that guard. A process without agents, such as yaya mcp serve, has
// calls of tools, too.
func (t *thirdParty) loadGuards(ctx context.Context) {
	t.loadIf(ctx, func(p plugin.Plugin) bool {
		if _, ok := p.(*agentPackage); ok { // its servers and hooks are for MCP clients, too
			return true
		}
		m := p.Manifest()
		return len(m.Guards) > 0 || len(t.c.kernel.Plugins.Guards(m.Name)) > 0
	})
}

var errNotInstalled = errors.New("it has guarded, and its installation cannot be read: install it again (yaya plugin install), or switch it off (yaya plugin disable)")

// missing returns the plugins that guard and are not among the entries, as plugins that have
// failed: so they are listed, and can be switched off and removed.
func (t *thirdParty) missing(entries []installed.Entry) (out []plugin.Plugin) {
	for _, name := range t.c.kernel.Plugins.Missing() {
		if !slices.ContainsFunc(entries, func(e installed.Entry) bool { return e.Name == name }) {
			out = append(out, broken{installed.Entry{Name: name, Version: "0.0.0"}, errNotInstalled})
		}
	}
	return out
}

// guarded puts the denial of a plugin that guards into the audit.
func (c *controlPlane) guarded(d plugin.Denial) error {
	_, err := c.log.Append(context.Background(), control.Change{
		Event: "guard_denied", Actor: Printable(cmp.Or(d.Principal, c.kernel), 100), Target: Printable(d.Plugin, 100),
		Payload: map[string]any{"point": d.Point, "session_id": d.Session, "tool": d.Tool, "reason": d.Reason},
	}, nil)
	return err
}
