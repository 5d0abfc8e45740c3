package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/memlimit"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"golang.org/x/term"
)

// serveOptions are the flags of yaya serve.
type serveOptions struct {
	mcpConfig []string
	strategy  string
	upstream  string
	noOpen    bool
	listen    daemon.Listen
}

func (o *serveOptions) register(c *cobra.Command) {
	c.Flags().StringArrayVar(&o.mcpConfig, "mcp-config", nil, "`file` of MCP servers instead of yaya's own; repeatable")
	c.Flags().StringVar(&o.strategy, "strategy", "", "`id` of the strategy that drives agents (default react)")
	c.Flags().StringVar(&o.upstream, "upstream", "", "`URL` of another yaya to attach this kernel to; enroll this machine there first (yaya connect)")
	c.Flags().BoolVar(&o.noOpen, "no-open", false, "do not open the page in a browser")
	registerListen(&o.listen, c)
}

// check refuses flags that do not go together, and files that are not there.
func (o *serveOptions) check() error {
	if err := o.listen.Check(); err != nil {
		return err
	}
	for _, file := range o.mcpConfig {
		if daemon.Missing(file) {
			return fmt.Errorf("--mcp-config: there is no file %s", file)
		}
	}
	return nil
}

func serveCommand(g *daemon.Flags) *cobra.Command {
	f := new(serveOptions)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Run the gateway: connect the configured MCP servers, offer all their tools at
http://127.0.0.1:8787/mcp, and serve a management page at http://127.0.0.1:8787/. On a
terminal with a desktop, yaya opens the page in your browser.

yaya reads servers from mcp.json in the configuration directory, or from the files named
with --mcp-config. A file can have the format of any common MCP client.

Other machines can reach yaya only over https. The certificate comes from one of

  --acme --host NAME          Let's Encrypt, or another ACME authority, for a
                              name that leads to port 443 of this machine;
                              you agree to the terms of the authority
  --tls-self-signed           yaya itself, for a home network: each device
                              compares a fingerprint (yaya device invite)
  --tls-cert and --tls-key    files
  --behind-proxy --host NAME  a proxy that serves https

With the first two, yaya also serves this machine without TLS at http://127.0.0.1:8787/.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			flags := map[string]string{}
			if f.strategy != "" {
				flags["strategy"] = f.strategy
			}
			o := daemon.Options{MCPConfig: f.mcpConfig, Listen: &f.listen, Upstream: f.upstream, Settings: flags}
			if os.Getenv(daemon.CheckEnv) != "" {
				return daemon.CheckServe(c.Context(), g, o, c.OutOrStdout())
			}
			var err error
			if o.Inherited, err = daemon.Inherit(); err != nil {
				return err
			}
			var terminal bool
			o.Reload, terminal = hangups(c.Context(), o.Inherited)
			next, err := serveFor(c.Context(), g, c.OutOrStdout(), o, !f.noOpen && !o.Inherited.Restarted())
			if next == nil {
				return err
			}
			return next.Exec(terminal)
		},
	}
	f.register(c)
	return c
}

// serveFor runs the gateway and prints its messages to out. If open is set, it opens the page
// when there is a desktop. It returns the program that goes on in this process, if there is one.
func serveFor(ctx context.Context, g *daemon.Flags, out io.Writer, s daemon.Options, open bool) (*daemon.Successor, error) {
	p, err := g.Paths()
	if err != nil {
		return nil, err
	}
	terminal := onTerminal(out)
	s.Started = func(at daemon.Started) {
		if open && terminal {
			page := at.Local + "/"
			if at.Configured == 0 && !at.SetUp {
				page += "#/start"
			}
			if err := openPage(page); err != nil {
				at.Log.Debug().Err(err).Msg("cannot open the page")
			}
		}
		welcome(out, g, at, p)
	}
	if terminal {
		s.Starting = func(ctx context.Context, now func() daemon.Report) { watchTable(ctx, out, now) }
	}
	s.Settled = memlimit.Rest
	next, err := daemon.Serve(ctx, g, s)
	if next == nil || ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "yaya: %s\nThe program before goes on.\n", feature.Clean(g.Secrets.ConcealString(err.Error()), 16<<10))
	}
	return next, nil
}

func onTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor fits
}

// welcome prints the addresses of yaya and the next steps.
func welcome(out io.Writer, g *daemon.Flags, at daemon.Started, p daemon.Paths) {
	url, remote := at.Base+"/mcp", at.Remote
	command, args := g.ShownStdio()
	yaya := daemon.Typed()
	var b strings.Builder
	if !at.Watched { // otherwise the table says so
		for _, inv := range at.Invalid {
			fmt.Fprintf(&b, "server %q cannot be used: %s\n", inv.Name, feature.Clean(inv.Err.Error(), 500))
		}
	}
	fmt.Fprintf(&b, "yaya %s\n  page          %s/\n  MCP endpoint  %s\n", daemon.Version(), at.Base, url)
	if at.Local != at.Base {
		fmt.Fprintf(&b, "  on this one   %s/ and %s/mcp\n", at.Local, at.Local)
	}
	b.WriteString(at.Certificate)
	fmt.Fprintf(&b, "  Claude Code   claude mcp add --transport http yaya %s%s\n", url, daemon.TokenHeader(remote))
	if remote {
		fmt.Fprintf(&b, "  its token     %s token create NAME\n", yaya)
	}
	fmt.Fprintf(&b, "  other clients {\"mcpServers\": {\"yaya\": {\"type\": \"http\", \"url\": %q%s}}}\n", url, daemon.TokenMember(remote))
	fmt.Fprintf(&b, "  over stdio    {\"mcpServers\": {\"yaya\": {\"command\": %s, \"args\": %s}}}\n", daemon.JSONText(command), daemon.JSONText(args))
	fmt.Fprintf(&b, "  other devices %s device invite\n", yaya)
	if at.Configured == 0 {
		fmt.Fprintf(&b, "\nNo MCP servers are configured yet.\n")
		suggest(&b, p, yaya)
	} else {
		fmt.Fprintf(&b, "  servers       %s mcp list\n\n", yaya)
	}
	_, _ = io.WriteString(out, b.String()) // the reader may be gone
}

// suggest tells how to add servers: from other clients, or by hand.
func suggest(b *strings.Builder, p daemon.Paths, yaya string) {
	found := false
	for _, f := range manage.Discover(p.Home) {
		if len(f.Config.Servers) > 0 {
			fmt.Fprintf(b, "  found %d in %s\n", len(f.Config.Servers), f.From())
			found = true
		}
	}
	if found {
		fmt.Fprintf(b, "  import them     %s mcp import\n", yaya)
	}
	fmt.Fprintf(b, "  add one         %s mcp add fs npx -y @modelcontextprotocol/server-filesystem ~\n", yaya)
	fmt.Fprintf(b, "  or use the page, or edit %s: yaya reloads it at once.\n", p.Servers())
}
