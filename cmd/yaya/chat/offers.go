package chat

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/yaya-ai/yaya/internal/mention"
)

// Limits of what servers are asked for. Their own limits end earlier, unless somebody has raised them.
const (
	listTime = 25 * time.Second
	readTime = 10 * time.Minute
)

// Servers returns the connected MCP servers that a session may use.
func (c *Client) Servers(ctx context.Context, session string) ([]mention.Server, error) {
	var out struct{ Servers []mention.Server }
	err := c.call(ctx, http.MethodGet, at(session, "servers"), nil, &out)
	return out.Servers, err
}

// Resources returns the resources of a server whose URIs begin with a prefix, as many as yaya lists.
func (c *Client) Resources(ctx context.Context, session, server, prefix string) ([]mention.Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var out struct{ Resources []mention.Resource }
	err := c.wait(ctx, http.MethodGet, at(session, "servers", server, "resources")+"?"+url.Values{"prefix": {prefix}}.Encode(), nil, &out)
	return out.Resources, err
}

// Prompts returns the prompts of a server whose names begin with a prefix, as many as yaya lists.
func (c *Client) Prompts(ctx context.Context, session, server, prefix string) ([]mention.Prompt, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var out struct{ Prompts []mention.Prompt }
	err := c.wait(ctx, http.MethodGet, at(session, "servers", server, "prompts")+"?"+url.Values{"prefix": {prefix}}.Encode(), nil, &out)
	return out.Prompts, err
}

// AttachResource has yaya read a resource of a server, and keep its text with a session.
func (c *Client) AttachResource(ctx context.Context, session, server, uri string) (Part, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var up struct{ Ref string }
	err := c.wait(ctx, http.MethodPost, at(session, "servers", server, "resources"), map[string]string{"uri": uri}, &up)
	return Part{Type: "file", Name: server + ":" + uri, Ref: up.Ref}, err
}

// Prompt returns a prompt of a server as the text of a message.
func (c *Client) Prompt(ctx context.Context, session, server, name string, args map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var out struct{ Text string }
	err := c.wait(ctx, http.MethodPost, at(session, "servers", server, "prompts"), map[string]any{"name": name, "arguments": args}, &out)
	return out.Text, err
}
