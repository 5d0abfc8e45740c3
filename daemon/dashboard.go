package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/mcpbridge"
)

// setupDone is set once somebody has been led through the first start.
const setupDone = "_meta.setup_done_at"

// changes passes on which parts of yaya have changed, to whoever shows them. The zero
// value is ready; methods are safe for concurrent use.
type changes struct {
	mu      sync.Mutex
	showing []func(parts ...string)
}

// follow has show called from now on, which must not block.
func (c *changes) follow(show func(parts ...string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.showing = append(c.showing[:len(c.showing):len(c.showing)], show)
}

// tell says that parts of yaya have changed.
func (c *changes) tell(parts ...string) {
	c.mu.Lock()
	all := c.showing
	c.mu.Unlock()
	for _, show := range all {
		show(parts...)
	}
}

// newLive begins to tell dashboards of what changes; the returned function ends it.
func newLive(ctx context.Context, b *bridge, s *wire.Server) (*admin.Live, func(), error) {
	k, controlPlane := b.core.kernel, b.core.st.controlPlane
	cfg := admin.LiveConfig{Server: s, Bus: k.Bus, Control: controlPlane.log, Read: b.core.reading}
	n := controlPlane.cluster
	if n != nil {
		cfg.Others = n.tellChanges
	}
	l, err := admin.NewLive(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	s.Handle(admin.TopicPrefix, l)
	b.changes.follow(l.Changed)
	k.AddAudience(l.Answers)
	unhear := func() {}
	if n != nil {
		k.AddAudience(n.answers)
		unhear = n.hearChanges(l.ChangedElsewhere)
	}
	controlPlane.devices.OnWaiting(func() { l.Changed(admin.PartDevices) })
	k.Approvals.OnChange(func() { l.Changed(admin.PartApprovals, admin.PartSessions) })
	unwatch := k.Tools.Watch(func(uint64) { l.Changed(admin.PartTools, admin.PartServers) })
	quarantined, err := bus.On(k.Bus, bus.SubscribeOptions{Name: "dashboard"}, mcpbridge.Quarantined, func(context.Context, event.Event, mcpbridge.ToolsQuarantined) error {
		l.Changed(admin.PartQuarantine, admin.PartServers)
		return nil
	})
	if err != nil {
		unwatch()
		unhear()
		l.Close()
		return nil, nil, err
	}
	return l, func() {
		quarantined.Close()
		unwatch()
		unhear()
		l.Close()
	}, nil
}

// reading is how this yaya is doing.
func (c *core) reading() admin.Reading {
	s, err := c.metrics.Stats()
	if err != nil {
		c.st.at.log.Warn().Err(err).Msg("the metrics cannot be read")
	}
	v := s.Values
	return admin.Reading{
		Time: time.Now().UTC(), Calls: s.All.Total, Errors: s.All.Errors, P50MS: s.All.P50.Seconds() * 1000, P95MS: s.All.P95.Seconds() * 1000,
		Servers: v["yaya_mcp_servers_ready"], Clients: v["yaya_mcp_sessions"], Sockets: v["yaya_websockets"],
		Goroutines: v["go_goroutines"], Memory: v["process_resident_memory_bytes"], CPU: v["process_cpu_seconds_total"],
		TokensIn: s.TokensIn, TokensOut: s.TokensOut,
	}
}

// setup says how to begin with this yaya.
func (c *core) setup(bases []string, remote bool) admin.Setup {
	base := bases[0]
	_, _, done := c.kernel.Settings.Get(setupDone)
	return admin.Setup{
		Version: Version(), URL: base, URLs: bases, MCP: base + "/mcp", Remote: remote, Workspace: c.st.workspace, Done: done, Snippets: snippets(base+"/mcp", remote, c.st.at.flags),
	}
}

// tokenPlace stands in snippets for the token that yaya token create has shown.
const tokenPlace = "YAYA_TOKEN"

// TokenHeader returns the header that a command line adds for a client on another machine.
func TokenHeader(remote bool) string {
	if !remote {
		return ""
	}
	return ` --header "Authorization: Bearer ` + tokenPlace + `"`
}

// TokenMember returns the member that it adds to the entry of a client.
func TokenMember(remote bool) string {
	if !remote {
		return ""
	}
	return `, "headers": {"Authorization": "Bearer ` + tokenPlace + `"}`
}

// snippets connect the common clients with an MCP endpoint; with a token if the clients
// can be on other machines.
func snippets(url string, remote bool, g *Flags) []admin.Snippet {
	over, with, codex := func(m map[string]any) map[string]any { return m }, "", ""
	if remote {
		over = func(m map[string]any) map[string]any {
			m["headers"] = map[string]string{"Authorization": "Bearer " + tokenPlace}
			return m
		}
		with = " Put what yaya token create NAME shows in the place of " + tokenPlace + "."
		codex = fmt.Sprintf("http_headers = { Authorization = %q }\n", "Bearer "+tokenPlace)
	}
	entry := func(key string, v any) string {
		raw, err := json.MarshalIndent(map[string]any{key: map[string]any{"yaya": v}}, "", "  ")
		if err != nil { // cannot be
			return ""
		}
		return string(raw)
	}
	command, args := g.ShownStdio()
	stdio, line := map[string]any{"command": command, "args": args}, shellLine(command, args)
	return []admin.Snippet{
		{Client: "Claude Code", Where: "Run this in a terminal." + with, Text: "claude mcp add --transport http yaya " + url + TokenHeader(remote)},
		{Client: "Claude Desktop", Where: "Settings → Developer → Edit Config, then restart Claude.", Text: entry("mcpServers", stdio)},
		{Client: "Cursor", Where: "Put this into ~/.cursor/mcp.json." + with, Text: entry("mcpServers", over(map[string]any{"url": url}))},
		{Client: "VS Code", Where: "Put this into .vscode/mcp.json, or run “MCP: Open User Configuration”." + with, Text: entry("servers", over(map[string]any{"type": "http", "url": url}))},
		{Client: "Codex", Where: "Put this into ~/.codex/config.toml." + with, Text: fmt.Sprintf("[mcp_servers.yaya]\nurl = %q\n%s", url, codex)},
		{Client: "Other clients", Where: "Streamable HTTP at this URL" + map[bool]string{true: " with the header Authorization: Bearer " + tokenPlace}[remote] + ", or over stdio with the command " + line + ".", Text: cmp.Or(url, line)},
	}
}

// JSONText is a text, or a list of them, as JSON.
func JSONText[T string | []string](v T) string {
	raw, err := json.Marshal(v)
	if err != nil { // cannot be
		return `""`
	}
	return string(raw)
}
