package chat

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/mention"
	"github.com/yaya-ai/yaya/internal/screen"
)

// maxMentions bounds the resources that one message mentions.
const maxMentions = 16

// mentioned matches a word that may mention a resource: a server as group 1, and a URI as group 2 in
// angle brackets, or else as group 3.
var mentioned = lazyregexp.New(`(?:^|\s)@([^\s@:/]+):(?:<([^\s<>]+)>|(\S+))`)

// punctuation ends a sentence, and no URI that is not in angle brackets.
const punctuation = ".,;!?"

// named is a resource that a message mentions.
type named struct{ server, uri string }

// mentions returns what a text mentions if there are servers of these names, each once. A URI ends
// before the punctuation of the sentence, unless it is in angle brackets (RFC 3986, appendix C).
func mentions(text string) (out []named) {
	for _, m := range mentioned().FindAllStringSubmatch(text, -1) {
		n := named{m[1], cmp.Or(m[2], strings.TrimRight(m[3], punctuation))}
		if n.uri != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// attachNamed attaches the resources of connected servers to a message. A URI of another server is an
// error: that may not have started yet, or its name may be wrong. Other words that look alike are text.
func (c *Client) attachNamed(ctx context.Context, session string, all []named) ([]Part, error) {
	if len(all) == 0 {
		return nil, nil
	}
	servers, err := c.Servers(ctx, session)
	if err != nil {
		return nil, err
	}
	known := func(n named) bool {
		return slices.ContainsFunc(servers, func(s mention.Server) bool { return s.Name == n.server && s.Resources })
	}
	for _, n := range all {
		if !known(n) && strings.Contains(n.uri, "://") {
			return nil, fmt.Errorf("no connected server %q has resources for this session (yaya mcp list shows the servers; a space after the @ makes it text)", screen.Clean(n.server, 100))
		}
	}
	all = slices.DeleteFunc(all, func(n named) bool { return !known(n) })
	if len(all) > maxMentions {
		return nil, fmt.Errorf("a message mentions at most %d resources, not %d", maxMentions, len(all))
	}
	var out []Part
	for _, n := range all {
		p, err := c.AttachResource(ctx, session, n.server, n.uri)
		if err != nil {
			return nil, fmt.Errorf("@%s: %w", screen.Clean(n.server+":"+n.uri, maxResult), err)
		}
		out = append(out, p)
	}
	return out, nil
}

// sayWith sends a message that has to be put together first: of the resources that it mentions, and
// of what the user's commands have said since the last one. text returns its text. On an error, what
// the user has typed is in the input again.
func (m *model) sayWith(what, typed, delivery string, text func(ctx context.Context) (string, error)) action {
	id, api := m.id, m.api
	var said []outcome // goes with the message
	said = append(said, m.ran[id]...)
	all := mentions(typed)
	key, again := m.keyOf(typed)
	return m.run(what, typed, true, func(ctx context.Context) func(*model) {
		sending, lost := false, false
		err := func() error {
			body, err := text(ctx)
			if err != nil {
				return err
			}
			parts, err := api.attachNamed(ctx, id, all)
			if err != nil {
				return err
			}
			for _, o := range said {
				p, err := api.Attach(ctx, id, "command.txt", base64.StdEncoding.EncodeToString([]byte(o.told())))
				if err != nil && ctx.Err() == nil {
					lost = true
					return fmt.Errorf("the output of your commands cannot go with the message, which goes without it now: %w", err)
				}
				if err != nil {
					return err
				}
				p.Name = "command.txt"
				parts = append(parts, p)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			sending = true
			err = api.deliver(m.ctx, id, key, append([]Part{{Type: "text", Text: body}}, parts...), delivery)
			if known(err, again) {
				return nil
			}
			return err
		}()
		if ctx.Err() != nil && err != nil && !sending {
			err = context.Canceled
		}
		return func(m *model) {
			if lost {
				delete(m.ran, id)
			}
			if err != nil {
				u := unsent{session: id, text: typed, err: err}
				if sending {
					u.key = key
				}
				m.takeBack(u)
				return
			}
			m.ran[id] = m.ran[id][min(len(said), len(m.ran[id])):]
		}
	})
}

// prompt sends a prompt of a server, with arguments as key=value.
func (m *model) prompt(line, server, name, rest string) (action, error) {
	args, err := arguments(rest)
	if err != nil {
		return nil, err
	}
	if server == "" || name == "" {
		return nil, errors.New("/SERVER:PROMPT [NAME=VALUE …] sends a prompt of an MCP server; Tab completes it")
	}
	id, api := m.id, m.api
	return m.sayWith("getting the prompt "+server+":"+name, line, "queue", func(ctx context.Context) (string, error) {
		text, err := api.Prompt(ctx, id, server, name, args)
		if err != nil {
			return "", fmt.Errorf("/%s:%s: %w", server, name, err)
		}
		return text, nil
	}), nil
}

// arguments reads NAME=VALUE words. A value in quotes may have spaces; a backslash within double
// quotes takes the next character as it is.
func arguments(s string) (map[string]string, error) {
	out := map[string]string{}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		name, rest, ok := strings.Cut(s, "=")
		if !ok || name == "" || strings.ContainsFunc(name, unicode.IsSpace) {
			return nil, fmt.Errorf("%s is not NAME=VALUE, as arguments of prompts are", screen.Clean(strings.Fields(s)[0], 40))
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("the argument %s is given twice", screen.Clean(name, 40))
		}
		var value strings.Builder
		quote, escaped, end := rune(0), false, len(rest)
	value:
		for i, r := range rest {
			switch {
			case escaped:
				value.WriteRune(r)
				escaped = false
			case quote == '"' && r == '\\':
				escaped = true
			case quote != 0 && r == quote:
				quote = 0
			case quote != 0:
				value.WriteRune(r)
			case r == '"' || r == '\'':
				quote = r
			case unicode.IsSpace(r):
				end = i
				break value
			default:
				value.WriteRune(r)
			}
		}
		if quote != 0 {
			return nil, fmt.Errorf("the value of %s has no closing %c", screen.Clean(name, 40), quote)
		}
		out[name], s = value.String(), rest[end:]
	}
	return out, nil
}

// mentionable finds what may stand behind an @: files, and servers with a colon; behind the colon, the
// resources of the server.
func mentionable(ctx context.Context, api *Client, session, root, prefix string) (out []choice, err error) {
	servers, err := api.Servers(ctx, session)
	if err != nil {
		return nil, err
	}
	server, uri, inServer := strings.Cut(prefix, ":")
	uri = strings.TrimPrefix(uri, "<")
	for _, s := range servers {
		switch {
		case !s.Resources || !typeable(s.Name):
		case inServer && s.Name == server:
			all, err := api.Resources(ctx, session, server, uri)
			for _, r := range all {
				if typeable(r.URI) {
					out = append(out, choice{"@" + server + ":" + mentionOf(r.URI), r.Name})
				}
			}
			return out, err
		case strings.HasPrefix(s.Name, prefix):
			out = append(out, choice{"@" + s.Name + ":", "resources of this server"})
		}
	}
	found, err := files(root, prefix)
	if len(out) > 0 {
		err = nil // the folder of the session may be elsewhere
	}
	return append(found, out...), err
}

// mentionOf returns a URI as a message mentions it.
func mentionOf(uri string) string {
	if strings.TrimRight(uri, punctuation) != uri || strings.HasPrefix(uri, "<") {
		return "<" + uri + ">"
	}
	return uri
}

// callable finds the commands that begin with a prefix: those of the chat, and servers with a colon;
// behind the colon, the prompts of the server.
func callable(ctx context.Context, api *Client, session, prefix string) (out []choice, err error) {
	out = beginning(prefix)
	server, name, inServer := strings.Cut(prefix, ":")
	servers, err := api.Servers(ctx, session)
	for _, s := range servers {
		switch {
		case !s.Prompts || !typeable(s.Name):
		case inServer && s.Name == server:
			all, err := api.Prompts(ctx, session, server, name)
			for _, p := range all {
				if typeable(p.Name) {
					out = append(out, choice{"/" + server + ":" + p.Name, cmp.Or(p.Title, p.Description)})
				}
			}
			return out, err
		case strings.HasPrefix(s.Name, prefix):
			out = append(out, choice{"/" + s.Name + ":", "prompts of this server"})
		}
	}
	if len(out) > 0 {
		err = nil // the commands of the chat need no server
	}
	return out, err
}

// argumentsOf finds the arguments of a prompt that begin with a prefix.
func argumentsOf(ctx context.Context, api *Client, session, server, name, prefix string) (out []choice, err error) {
	all, err := api.Prompts(ctx, session, server, name)
	for _, p := range all {
		for _, a := range p.Arguments {
			if p.Name != name || !strings.HasPrefix(a.Name, prefix) || !typeable(a.Name) {
				continue
			}
			note := a.Description
			if a.Required {
				note = "required. " + note
			}
			out = append(out, choice{a.Name + "=", strings.TrimSpace(note)})
		}
	}
	return out, err
}
