package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// lister returns the names of things that there are.
type lister func(context.Context, *daemon.Flags) ([]string, error)

// namesAt asks the API for things.
func namesAt[T any](path string, with func(context.Context, *daemon.Flags, func(*daemon.Backend) error) error, names func(T) []string) lister {
	return func(ctx context.Context, g *daemon.Flags) (all []string, err error) {
		err = with(ctx, g, func(b *daemon.Backend) error {
			var out T
			err := b.API(ctx, http.MethodGet, path, nil, &out)
			all = names(out)
			return err
		})
		return all, err
	}
}

// each returns a name of each thing.
func each[T any](name func(T) string) func([]T) []string {
	return func(all []T) (out []string) {
		for _, x := range all {
			out = append(out, name(x))
		}
		return out
	}
}

// memories returns the names of the newest memories.
func memories(ctx context.Context, g *daemon.Flags) ([]string, error) {
	all, err := g.Memories(ctx, daemon.MemoryFilter{}, maxCompleted)
	return each(func(m daemon.Memory) string { return m.ID })(all), err
}

// completed are the commands whose first argument is the name of a thing that there is; all arguments
// of memory forget are.
func completed() map[string]lister {
	tools := namesAt("/api/tools", daemon.WithServers, each(func(t admin.Tool) string { return t.Name }))
	servers := namesAt("/api/mcp/servers", daemon.WithServers, each(func(s admin.Server) string { return s.Name }))
	providers := namesAt("/api/llm-providers", daemon.WithAgents, each(func(p admin.Provider) string { return p.ID }))
	secrets := namesAt("/api/secrets", daemon.WithServers, func(l admin.SecretList) []string {
		return each(func(s admin.Secret) string { return s.Name })(l.Secrets)
	})
	return map[string]lister{
		"mcp call": tools, "mcp get": servers, "mcp remove": servers, "mcp restart": servers, "mcp edit": servers, "mcp logs": servers, "mcp tools": servers,
		"mcp enable": servers, "mcp disable": servers, "mcp allow": servers, "mcp approve": servers, "mcp login": servers, "mcp logout": servers,
		"catalog update": servers, "secret set": secrets, "secret remove": secrets,
		"memory forget": memories,
		"provider add":  presetNames,
		"provider use":  providers, "provider remove": providers, "provider test": providers,
	}
}

// completeNames has shells complete the names of things (cobra's __complete).
func completeNames(g *daemon.Flags, root *cobra.Command) {
	for path, list := range completed() {
		c := root // its Find would change the help of what it passes
		for name := range strings.FieldsSeq(path) {
			c = c.Commands()[slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })]
		}
		c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 && path != "memory forget" { // which takes several
				return nil, cobra.ShellCompDirectiveDefault
			}
			all := list.names(c.Context(), g, begun)
			return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
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
func (list lister) names(ctx context.Context, g *daemon.Flags, begun string) (out []cobra.Completion) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	all, err := list(ctx, g)
	if err != nil {
		cobra.CompDebugln(err.Error(), false) // where BASH_COMP_DEBUG_FILE says
	}
	for _, name := range all {
		if simple().MatchString(name) && strings.HasPrefix(name, begun) && len(out) < maxCompleted {
			out = append(out, name)
		}
	}
	return out
}
