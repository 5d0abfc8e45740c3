package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/mcpbridge"
)

// setupDone is set once somebody has been led through the first start.
const setupDone = "_meta.setup_done_at"

// onStatus tells of what becomes of servers.
func (a *app) onStatus(st feature.Status) {
	a.bridge.OnStatus(st)
	a.changed(admin.PartServers)
}

// answers reports whether somebody has the page open who may answer asks.
func (a *app) answers() bool {
	l := a.live.Load()
	return l != nil && l.Answers()
}

// changed tells dashboards, if there are any, that parts of yaya have changed.
func (a *app) changed(parts ...string) {
	if l := a.live.Load(); l != nil {
		l.Changed(parts...)
	}
}

// watch begins to tell dashboards of what changes; the returned function ends it.
func (a *app) watch(ctx context.Context, c *controlPlane, s *wire.Server) (*admin.Live, func(), error) {
	l, err := admin.NewLive(ctx, admin.LiveConfig{Server: s, Bus: a.kernel.Bus, Control: c.log, Read: a.reading})
	if err != nil {
		return nil, nil, err
	}
	s.Handle(admin.TopicPrefix, l)
	a.live.Store(l)
	c.devices.OnWaiting(func() { l.Changed(admin.PartDevices) })
	a.kernel.Approvals.OnChange(func() { l.Changed(admin.PartApprovals, admin.PartSessions) })
	unwatch := a.kernel.Tools.Watch(func(uint64) { l.Changed(admin.PartTools, admin.PartServers) })
	quarantined, err := bus.On(a.kernel.Bus, bus.SubscribeOptions{Name: "dashboard"}, mcpbridge.Quarantined, func(context.Context, event.Event, mcpbridge.ToolsQuarantined) error {
		l.Changed(admin.PartQuarantine, admin.PartServers)
		return nil
	})
	if err != nil {
		unwatch()
		l.Close()
		return nil, nil, err
	}
	return l, func() {
		quarantined.Close()
		unwatch()
		l.Close()
	}, nil
}

// reading is how this yaya is doing.
func (a *app) reading() admin.Reading {
	s, err := a.metrics.Stats()
	if err != nil {
		a.log.Warn().Err(err).Msg("the metrics cannot be read")
	}
	v := s.Values
	return admin.Reading{
		Time: time.Now().UTC(), Calls: s.All.Total, Errors: s.All.Errors, P50MS: s.All.P50.Seconds() * 1000, P95MS: s.All.P95.Seconds() * 1000,
		Servers: v["yaya_mcp_servers_ready"], Clients: v["yaya_mcp_sessions"], Sockets: v["yaya_websockets"],
		Goroutines: v["go_goroutines"], Memory: v["process_resident_memory_bytes"], CPU: v["process_cpu_seconds_total"],
	}
}

// setup says how to begin with this yaya.
func (a *app) setup(base string, remote bool) admin.Setup {
	_, _, done := a.kernel.Settings.Get(setupDone)
	return admin.Setup{
		Version: yayaVersion(), URL: base, MCP: base + "/mcp", Remote: remote, Workspace: a.workspace, Done: done, Snippets: snippets(base+"/mcp", remote),
	}
}

// tokenPlace stands in snippets for the token that yaya token create has shown.
const tokenPlace = "YAYA_TOKEN"

// tokenHeader is what a command line adds for a client on another machine.
func tokenHeader(remote bool) string {
	if !remote {
		return ""
	}
	return ` --header "Authorization: Bearer ` + tokenPlace + `"`
}

// tokenMember is what it adds to the entry of a client.
func tokenMember(remote bool) string {
	if !remote {
		return ""
	}
	return `, "headers": {"Authorization": "Bearer ` + tokenPlace + `"}`
}

// snippets connect the common clients with an MCP endpoint; with a token if the clients
// can be on other machines.
func snippets(url string, remote bool) []admin.Snippet {
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
	stdio := map[string]any{"command": shownProgram(), "args": []string{"mcp", "serve"}}
	return []admin.Snippet{
		{Client: "Claude Code", Where: "Run this in a terminal." + with, Text: "claude mcp add --transport http yaya " + url + tokenHeader(remote)},
		{Client: "Claude Desktop", Where: "Settings → Developer → Edit Config, then restart Claude.", Text: entry("mcpServers", stdio)},
		{Client: "Cursor", Where: "Put this into ~/.cursor/mcp.json." + with, Text: entry("mcpServers", over(map[string]any{"url": url}))},
		{Client: "VS Code", Where: "Put this into .vscode/mcp.json, or run “MCP: Open User Configuration”." + with, Text: entry("servers", over(map[string]any{"type": "http", "url": url}))},
		{Client: "Codex", Where: "Put this into ~/.codex/config.toml." + with, Text: fmt.Sprintf("[mcp_servers.yaya]\nurl = %q\n%s", url, codex)},
		{Client: "Other clients", Where: "Streamable HTTP at this URL" + map[bool]string{true: " with the header Authorization: Bearer " + tokenPlace}[remote] + ", or over stdio with the command " + shownProgram() + " mcp serve.", Text: cmp.Or(url, shownProgram()+" mcp serve")},
	}
}

// shownProgram is [program] for snippets, which people read.
func shownProgram() string {
	path, err := program()
	if err != nil {
		return "yaya"
	}
	return path
}

// jsonText is a text as JSON.
func jsonText(s string) string {
	raw, err := json.Marshal(s)
	if err != nil { // cannot be
		return `""`
	}
	return string(raw)
}
