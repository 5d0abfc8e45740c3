package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// skillsServer is the name under which skills are offered to MCP clients: a prompt is named
// skills__<name>, and profiles select them as they select a server.
const skillsServer = "skills"

// skillPrompts offers skills to MCP clients as prompts: those of the user, and of the folder
// that yaya works in if it is trusted. To the router it is a server without anything else.
type skillPrompts struct{ core *core }

// withOwn returns the servers of a router and, last, yaya's own: the skills and, if it has them,
// the sessions. A configured server of the same name comes first; the sessions give way to one.
func withOwn(servers func() []relay.Server, c *core) func() []relay.Server {
	return func() []relay.Server {
		all := append(servers(), skillPrompts{c})
		s := c.resources.Load()
		if s == nil || slices.ContainsFunc(all, func(x relay.Server) bool { return x.Name() == sessionsServer }) {
			return all
		}
		return append(all, s)
	}
}

// Name implements [relay.ServerInfo].
func (skillPrompts) Name() string { return skillsServer }

// Prefix implements [relay.ServerInfo].
func (skillPrompts) Prefix() (string, bool) { return skillsServer, false }

// Has implements [relay.ServerInfo].
func (skillPrompts) Has(capability string) bool { return capability == relay.Prompts.Needs }

// Capabilities implements [relay.ServerInfo].
func (skillPrompts) Capabilities() jsonrpc.Object { return jsonrpc.Object{} }

// Instructions implements [relay.ServerInfo].
func (skillPrompts) Instructions() string { return "" }

// List implements [relay.Server].
func (s skillPrompts) List(_ context.Context, k relay.Kind) ([]jsonrpc.Object, error) {
	if k != relay.Prompts {
		return nil, nil
	}
	in, done := s.core.openSkills("")
	defer done()
	var out []jsonrpc.Object
	for _, f := range s.core.library.Look(in).Counting() {
		raw, err := json.Marshal(map[string]string{"name": f.Name, "description": s.core.st.at.secrets.String(f.Description)})
		if err != nil {
			return nil, err
		}
		o, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// Relay implements [relay.Server]: it serves prompts/get.
func (s skillPrompts) Relay(_ context.Context, _ relay.Peer, method string, _ jsonrpc.Object, edits ...jsonrpc.Edit) (relay.Reply, error) {
	name := ""
	for _, e := range edits {
		if e.Name == relay.Prompts.Key {
			name, _ = jsonrpc.AsString(e.Value)
		}
	}
	if method != "prompts/get" || name == "" {
		return relay.Refusal(jsonrpc.CodeMethodNotFound, fmt.Sprintf("skills have no %s", Printable(method, 100))), nil
	}
	in, done := s.core.openSkills("")
	defer done()
	f, ok := s.core.library.Look(in).Find(name)
	if !ok {
		return relay.Refusal(jsonrpc.CodeInvalidParams, fmt.Sprintf("there is no skill %q", Printable(name, 100))), nil
	}
	result, err := s.prompt(f)
	if err != nil {
		return relay.Refusal(jsonrpc.CodeInternal, fmt.Sprintf("skill %s: %v", f.Name, err)), nil
	}
	return relay.Reply{Result: result}, nil
}

func (s skillPrompts) prompt(f agentskill.Found) (jsonrpc.Object, error) {
	text, err := s.core.skills.Content(f)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	}
	secrets := s.core.st.at.secrets
	raw, err := json.Marshal(struct {
		Description string    `json:"description"`
		Messages    []message `json:"messages"`
	}{secrets.String(f.Description), []message{{"user", content{"text", secrets.String(text)}}}})
	if err != nil {
		return jsonrpc.Object{}, err
	}
	return jsonrpc.ParseObject(raw)
}

// Notify implements [relay.Server]: skills take no notifications.
func (skillPrompts) Notify(string, string, []byte) bool { return true }

// Subscribe implements [relay.Server]: skills have no resources.
func (skillPrompts) Subscribe(context.Context, string) error { return relay.ErrUnknown }

// Unsubscribe implements [relay.Server].
func (skillPrompts) Unsubscribe(context.Context, string) error { return nil }
