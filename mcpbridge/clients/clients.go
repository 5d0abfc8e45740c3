package clients

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Spec says how a client reaches yaya: by a command, or at an address.
type Spec struct {
	Command string // an absolute path
	Args    []string
	URL     string
	Token   string // for the address; may be empty
}

// Client is an MCP client that is configured by a file.
type Client struct {
	ID     string // for the command line
	Name   string
	Paths  []string // possible paths of its file; current versions write the first
	Format servers.Format
	// Each says that each path belongs to a separate program, such as an editor.
	Each bool

	top    string // the member that holds the servers
	list   bool   // that member is a list
	syntax syntax
	local  func(Spec) members
	remote func(Spec) members
	// noRemote is the reason why the client cannot use an address.
	noRemote string
}

// syntax edits one kind of file.
type syntax interface {
	// set returns data with the entry added or replaced, and the text of the entry before and
	// after.
	set(c Client, data []byte, m members) (out []byte, was, now string, err error)
	// unset returns data without the entry. With empty, it also removes the object of servers
	// if that becomes empty.
	unset(c Client, data []byte, empty bool) (out []byte, was string, err error)
}

// members is an object whose order is kept.
type members []member

type member struct {
	key   string
	value any // string, bool, int, []string, members
}

func command(s Spec, more ...member) members {
	return append(members{{"command", s.Command}, {"args", s.Args}}, more...)
}

func bearer(key string, s Spec) members {
	if s.Token == "" {
		return nil
	}
	return members{{key, members{{"Authorization", "Bearer " + s.Token}}}}
}

// at returns an entry with an address under key.
func at(key string, before ...member) func(Spec) members {
	return func(s Spec) members {
		return slices.Concat(before, members{{key, s.URL}}, bearer("headers", s))
	}
}

func typed(kind string) []member { return []member{{"type", kind}} }

func plain(s Spec) members { return command(s) }

// known are the clients whose files yaya can write, without their paths.
var known = []Client{
	{ID: "claude-code", Format: servers.FormatClaudeCode, top: "mcpServers", local: func(s Spec) members { return append(typed("stdio"), command(s)...) }, remote: at("url", typed("http")...)},
	{ID: "claude-desktop", Format: servers.FormatClaudeDesktop, top: "mcpServers", local: plain, noRemote: "Claude Desktop accepts addresses only as connectors in its settings, not from a file; omit --url to connect by command"},
	{ID: "cursor", Format: servers.FormatCursor, top: "mcpServers", local: plain, remote: at("url")},
	{ID: "vscode", Each: true, Format: servers.FormatVSCode, top: "servers", local: func(s Spec) members { return append(typed("stdio"), command(s)...) }, remote: at("url", typed("http")...)},
	{ID: "codex", Format: servers.FormatCodex, top: "mcp_servers", syntax: tomlFile{}, local: plain, remote: func(s Spec) members {
		return append(members{{"url", s.URL}}, bearer("http_headers", s)...)
	}},
	{ID: "gemini", Format: servers.FormatGemini, top: "mcpServers", local: plain, remote: at("httpUrl")},
	{ID: "qwen", Format: servers.FormatQwen, top: "mcpServers", local: plain, remote: at("httpUrl")},
	{ID: "opencode", Format: servers.FormatOpencode, top: "mcp", local: func(s Spec) members {
		return members{{"type", "local"}, {"command", append([]string{s.Command}, s.Args...)}, {"enabled", true}}
	}, remote: func(s Spec) members { return append(at("url", typed("remote")...)(s), member{"enabled", true}) }},
	{ID: "goose", Format: servers.FormatGoose, top: "extensions", syntax: yamlFile{}, local: func(s Spec) members {
		return members{{"enabled", true}, {"type", "stdio"}, {"name", servers.OwnName}, {"description", description}, {"cmd", s.Command}, {"args", s.Args}, {"envs", members{}}, {"timeout", 300}}
	}, remote: func(s Spec) members {
		return append(members{{"enabled", true}, {"type", "streamable_http"}, {"name", servers.OwnName}, {"description", description}, {"uri", s.URL}, {"timeout", 300}}, bearer("headers", s)...)
	}},
	{ID: "windsurf", Format: servers.FormatWindsurf, top: "mcpServers", local: plain, remote: at("serverUrl")},
	{ID: "zed", Format: servers.FormatZed, top: "context_servers", local: func(s Spec) members {
		return append(members{{"source", "custom"}}, command(s, member{"env", members{}})...)
	}, remote: at("url")},
	{ID: "cline", Format: servers.FormatCline, top: "mcpServers", local: plain, remote: at("url", typed("streamableHttp")...)},
	{ID: "roo", Each: true, Format: servers.FormatRoo, top: "mcpServers", local: plain, remote: at("url", typed("streamable-http")...)},
	{ID: "lm-studio", Format: servers.FormatLMStudio, top: "mcpServers", local: plain, remote: at("url")},
	{ID: "amazon-q", Format: servers.FormatAmazonQ, top: "mcpServers", local: plain, remote: at("url", typed("http")...)},
	{ID: "kiro", Format: servers.FormatKiro, top: "mcpServers", local: plain, remote: at("url")},
	{ID: "junie", Format: servers.FormatJunie, top: "mcpServers", local: plain, remote: at("url")},
	{ID: "jetbrains", Format: servers.FormatJetBrains, top: "servers", local: func(s Spec) members { return append(typed("stdio"), command(s)...) }, remote: func(s Spec) members {
		m := append(members(typed("http")), member{"url", s.URL})
		if s.Token != "" {
			m = append(m, member{"requestInit", bearer("headers", s)})
		}
		return m
	}},
	{ID: "crush", Format: servers.FormatCrush, top: "mcp", local: func(s Spec) members { return append(typed("stdio"), command(s)...) }, remote: at("url", typed("http")...)},
	{ID: "kimi", Each: true, Format: servers.FormatKimi, top: "mcpServers", local: plain, remote: at("url", member{"transport", "http"})},
	{ID: "copilot-cli", Format: servers.FormatCopilotCLI, top: "mcpServers", local: func(s Spec) members {
		return append(append(typed("local"), command(s)...), member{"tools", []string{"*"}})
	}, remote: func(s Spec) members { return append(at("url", typed("http")...)(s), member{"tools", []string{"*"}}) }},
	{ID: "warp", Format: servers.FormatWarp, top: "mcpServers", local: plain, remote: at("url")},
	{ID: "continue", Format: servers.FormatContinue, top: "mcpServers", list: true, syntax: yamlFile{}, local: func(s Spec) members {
		return append(members{{"name", servers.OwnName}}, command(s)...)
	}, remote: func(s Spec) members {
		m := members{{"name", servers.OwnName}, {"type", "streamable-http"}, {"url", s.URL}}
		if s.Token != "" {
			m = append(m, member{"requestOptions", bearer("headers", s)})
		}
		return m
	}},
}

const description = "the tools of all servers that yaya connects"

// All lists the clients, with their paths from places.
func All(places []servers.Location) []Client {
	out := slices.Clone(known)
	for i := range out {
		c := &out[i]
		c.Name = c.Format.Client()
		if c.syntax == nil {
			c.syntax = jsonFile{}
		}
		for _, l := range places {
			if l.Format == c.Format {
				c.Paths = append(c.Paths, l.Path)
			}
		}
	}
	return out
}

// Edit is a change of a client's file.
type Edit struct {
	Data []byte
	// Was and Now are the text of yaya's entry before and after; "" for none.
	Was, Now string
	// Gone says that Add created the file and it contains nothing else, so it can be removed.
	// Data is its content otherwise.
	Gone bool
}

// Add returns the client's file with yaya's entry according to spec. If nothing changes, Was
// and Now are equal.
func (c Client) Add(data []byte, spec Spec) (Edit, error) {
	if err := c.check(spec); err != nil {
		return Edit{}, err
	}
	m := c.local
	if spec.URL != "" {
		m = c.remote
	}
	found, err := c.ours(data)
	if err != nil {
		return Edit{}, err
	}
	entry := m(spec)
	out, was, now, err := c.syntax.set(c, data, entry)
	if err != nil {
		return Edit{}, err
	}
	if found {
		same, err := c.says(data, entry)
		if err != nil {
			return Edit{}, err
		}
		if same {
			return Edit{Data: data, Was: was, Now: was}, nil
		}
	}
	if err := c.onlyOurs(data, out); err != nil {
		return Edit{}, err
	}
	if same, err := c.says(out, entry); err != nil || !same {
		return Edit{}, errors.Join(fmt.Errorf("%s: cannot write the entry here: add it by hand", c.Name), err)
	}
	return Edit{Data: out, Was: was, Now: now}, nil
}

// Remove returns the client's file without yaya's entry. before is a backup from before the
// entry was added, nil if there was no file; if the result means the same, Remove returns the
// backup byte for byte.
func (c Client) Remove(data, before []byte) (Edit, error) {
	found, err := c.ours(data)
	if err != nil {
		return Edit{}, err
	}
	if !found {
		return Edit{Data: data}, nil
	}
	var e Edit
	// An empty object of servers stays: some clients reject a file without one.
	for _, empty := range []bool{false, true} {
		out, was, err := c.syntax.unset(c, data, empty)
		if err != nil {
			return Edit{}, err
		}
		if err := c.onlyOurs(data, out); err != nil {
			return Edit{}, err
		}
		if _, left, err := c.Entry(out); err != nil || left {
			return Edit{}, errors.Join(fmt.Errorf("yaya cannot edit the layout of the file of %s; remove its %q by hand", c.Name, servers.OwnName), err)
		}
		if !empty {
			e = Edit{Data: out, Was: was}
		}
		if before != nil && squash(out) == squash(before) && c.onlyOurs(data, before) == nil {
			e.Data = before
			break
		}
	}
	if before == nil {
		e.Gone, err = c.made(data)
	}
	return e, err
}

// made reports whether Add created the file: it equals the file that Add would create.
func (c Client) made(data []byte) (bool, error) {
	s, _, err := c.Entry(data)
	if err != nil {
		return false, err
	}
	token, _ := strings.CutPrefix(s.Headers["Authorization"], "Bearer ")
	e, err := c.Add(nil, Spec{Command: s.Command, Args: s.Args, URL: s.URL, Token: token})
	// Add did not write an entry that it would not write.
	return err == nil && bytes.Equal(e.Data, data), nil
}

// squash removes layout characters and empty objects from a text.
func squash(data []byte) string {
	return strings.NewReplacer("{}", "", "[]", "").Replace(strings.Join(strings.Fields(string(data)), ""))
}

// Entry returns the entry named yaya in a client's file, parsed as a server. It may belong to
// another program: see [Client.Foreign].
func (c Client) Entry(data []byte) (servers.Server, bool, error) {
	cfg, err := servers.Parse(c.file(), data, c.Format)
	if err != nil {
		return servers.Server{}, false, err
	}
	for _, s := range slices.Concat(cfg.Own, cfg.Servers) {
		if s.Name == servers.OwnName {
			return s, true, nil
		}
	}
	for _, inv := range cfg.Invalid {
		if inv.Name == servers.OwnName {
			return servers.Server{Name: inv.Name}, true, nil
		}
	}
	return servers.Server{}, false, nil
}

// Foreign returns an error if the entry named yaya in a client's file is not yaya's. Any
// address counts as yaya's, since a yaya can run anywhere.
func (c Client) Foreign(data []byte) error {
	cfg, err := servers.Parse(c.file(), data, c.Format)
	if err != nil {
		return err
	}
	for _, inv := range cfg.Invalid {
		if inv.Name == servers.OwnName {
			return fmt.Errorf("%s has a server %q that cannot be read: %w; correct or remove it there", c.Name, servers.OwnName, inv.Err)
		}
	}
	for _, s := range cfg.Servers {
		if s.Name == servers.OwnName && s.URL == "" {
			return fmt.Errorf("%s has a server %q that runs %s, which is not yaya; remove or rename it there first", c.Name, servers.OwnName, s.Endpoint())
		}
	}
	return nil
}

// ours reports whether the file has yaya's entry. A foreign entry is an error.
func (c Client) ours(data []byte) (bool, error) {
	if err := c.Foreign(data); err != nil {
		return false, err
	}
	_, found, err := c.Entry(data)
	return found, err
}

// file returns a file name with the extension for the syntax.
func (c Client) file() string { return cmp.Or(slices.Concat(c.Paths, []string{"file"})...) }

// CheckAddress returns an error if a client cannot use an address.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || strings.ContainsAny(address, "$`{}") {
		return fmt.Errorf("%q is not an http or https address", address)
	}
	return nil
}

func (c Client) check(s Spec) error {
	if s.URL == "" {
		for _, w := range append([]string{s.Command}, s.Args...) {
			if strings.ContainsAny(w, "$`{}\r\n\x00") {
				return fmt.Errorf("%s may interpret a part of %q as a variable; move yaya to a path without $, braces and backquotes", c.Name, w)
			}
		}
		return nil
	}
	if c.remote == nil {
		return errors.New(c.noRemote)
	}
	if err := CheckAddress(s.URL); err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(strings.ToLower(s.URL), "https:") && s.Token != "" && !servers.Loopback(s.URL):
		return fmt.Errorf("the token would travel as plain text to %s; use an https address", s.URL)
	case strings.ContainsFunc(s.Token, func(r rune) bool { return r <= ' ' || r > '~' || r == '$' || r == '`' || r == '{' }):
		return errors.New("the token contains characters that never occur in a yaya token")
	}
	return nil
}
