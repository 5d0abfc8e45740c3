package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// things are those whose names shells complete, as the API lists them.
type things struct {
	path   string
	within string // the member with the list, "" if the answer is the list
	name   string // the member with the name
	with   func(context.Context, *daemon.Flags, func(*daemon.Backend) error) error
}

// completed are the commands whose first argument is the name of a thing that there is.
func completed() map[string]things {
	out := map[string]things{"mcp call": {"/api/tools", "", "name", daemon.WithServers}}
	for commands, t := range map[string]things{
		"mcp get, mcp remove, mcp restart, mcp edit, mcp logs, mcp tools, mcp enable, mcp disable, mcp allow, mcp approve, mcp login, mcp logout, catalog update": {"/api/mcp/servers", "", "name", daemon.WithServers},
		"secret set, secret remove":                    {"/api/secrets", "secrets", "name", daemon.WithServers},
		"provider use, provider remove, provider test": {"/api/llm-providers", "", "id", daemon.WithAgents},
	} {
		for c := range strings.SplitSeq(commands, ", ") {
			out[c] = t
		}
	}
	return out
}

// completeNames has shells complete the names of things (cobra's __complete).
func completeNames(g *daemon.Flags, root *cobra.Command) {
	for path, t := range completed() {
		c := root // its Find would change the help of what it passes
		for name := range strings.FieldsSeq(path) {
			c = c.Commands()[slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })]
		}
		c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return t.names(c.Context(), g, begun), cobra.ShellCompDirectiveNoFileComp
		}
	}
}

const (
	completeTime = 2 * time.Second
	maxCompleted = 500
)

// simple is a name that no shell reads as more than a word.
var simple = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`)

// names returns those that begin with some letters; none if they cannot be listed soon.
func (t things) names(ctx context.Context, g *daemon.Flags, begun string) (out []cobra.Completion) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	err := t.with(ctx, g, func(b *daemon.Backend) error {
		var raw json.RawMessage
		if err := b.API(ctx, http.MethodGet, t.path, nil, &raw); err != nil {
			return err
		}
		if t.within != "" {
			var within map[string]json.RawMessage
			if err := json.Unmarshal(raw, &within); err != nil {
				return err
			}
			raw = within[t.within]
		}
		var all []map[string]json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			return err
		}
		for _, x := range all {
			var name string
			if json.Unmarshal(x[t.name], &name) == nil && simple().MatchString(name) && strings.HasPrefix(name, begun) && len(out) < maxCompleted {
				out = append(out, name)
			}
		}
		return nil
	})
	if err != nil {
		cobra.CompDebugln(err.Error(), false) // where BASH_COMP_DEBUG_FILE says
	}
	return out
}
