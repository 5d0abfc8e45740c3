package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"slices"
	"strconv"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// MayReach reports whether a call that runs no command may reach a host for an address of the web:
// by the answers that commands have had, or by a person's. It may block. why says why not.
func (p *Plugin) MayReach(ctx context.Context, call tool.Call, host string, port int, url string) (ok bool, why string) {
	if private(host) {
		return false, "yaya does not ask about addresses outside the public internet"
	}
	key := net.JoinHostPort(host, strconv.Itoa(port))
	if ok, why := p.hosts.begin(call.SessionID, call.Turn, key); ok || why != "" {
		return ok, why
	}
	return p.putHost(ctx, call, key, struct {
		Host string `json:"host"`
		Port int    `json:"port"`
		URL  string `json:"url"`
	}{host, port, url}, "the agent wants to read "+url)
}

// Reachable returns the hosts that the user allows without a question. The hosts of package
// managers are not among them: somebody agrees to a command, while a call that only reads is not
// asked about, and a host that fetches what an address names can tell others of it.
func (p *Plugin) Reachable() []string { return p.cfg.Hosts() }

// AllowHosts tells how the user allows hosts, "" if they are allowed.
func (p *Plugin) AllowHosts(hosts ...string) string {
	all := slices.Clone(p.cfg.Hosts())
	listed := len(all)
	for _, h := range hosts {
		if !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	text, err := json.Marshal(all)
	if err != nil || len(all) == listed { // strings have no error
		return ""
	}
	return p.allowBy(hostsKey, "'"+string(text)+"'")
}

// putHost asks a person about a host. A yes holds for the call, or for the session; a no holds for
// the turn.
func (p *Plugin) putHost(ctx context.Context, by tool.Call, key string, shown any, brief string) (ok bool, why string) {
	var params bytes.Buffer
	enc := json.NewEncoder(&params)
	enc.SetEscapeHTML(false) // a command is shown as sh takes it
	if err := enc.Encode(shown); err != nil {
		return false, err.Error()
	}
	call := tool.Call{ID: "host_" + rand.Text(), Name: tool.HostQuestion, Args: bytes.TrimSpace(params.Bytes()), SessionID: by.SessionID, Turn: by.Turn, Origin: by.Origin, Caller: by.Caller}
	def := tool.Definition{Name: tool.HostQuestion, Identity: tool.Identity{Tool: tool.HostQuestion}, Kind: tool.KindNetwork, InputSchema: json.RawMessage(`{"type":"object"}`)}
	d, err := p.cfg.Ask(ctx, call, def, brief)
	switch {
	case ctx.Err() != nil:
		return false, "nobody answered before the call ended"
	case err != nil:
		why = err.Error()
	case d.Response == event.Approve:
		return true, ""
	case d.Response == event.ApproveForSession:
		p.hosts.allow(by.SessionID, key)
		return true, ""
	default:
		why = "its user was asked, and said no"
		if d.Feedback != "" {
			why += ": " + d.Feedback
		}
	}
	p.hosts.refuse(by.SessionID, by.Turn, key, why)
	return false, why
}
