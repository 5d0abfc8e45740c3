package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

func tokenCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Manage long-lived tokens for remote clients",
		Long: `Manage long-lived tokens for remote clients. A client sends its token as
"Authorization: Bearer …". The token is valid at every address of yaya, until you revoke it
or it expires. Rules and profiles refer to its holder as token:NAME. You can reuse the name
of a revoked token: the rules for the name apply to the new token, which gets none of the
old one's data. For a device that can store a key, yaya device invite is better.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(tokenCreateCommand(g), tokenListCommand(g), tokenRevokeCommand(g))
	return c
}

func tokenCreateCommand(g *daemon.Flags) *cobra.Command {
	var scopes, only []string
	var expires string
	var asJSON bool
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a token and show it once",
		Long: `Create a token for a remote client, and show it once: yaya stores only a hash of it. NAME
identifies the client in rules, profiles, the audit log and yaya token list.

The token's scopes limit what the client may do, and --server limits the MCP servers whose
tools it may call. The default scope, tools:call, is all that an MCP client needs. The
scopes are:

  ` + strings.Join(scopeLines(), "\n  ") + `

"default" stands for ` + scopeWords(auth.DefaultScopes()) + `; "admin" for all of them.

The exit code is 1 if a token with this name exists (revoke it first), and 2 for a wrong
scope, name or lifetime.`,
		Example: `  yaya token create laptop
  yaya token create ci --server github --expires 90d
  yaya token create monitor --scope metrics:read --scope audit:read --expires 1y`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in := map[string]any{"name": args[0], "scopes": scopes}
			if len(only) > 0 {
				in["servers"] = only
			}
			if expires != "" {
				life, err := parseLife(expires)
				if err != nil {
					return &usageError{c.CommandPath(), fmt.Errorf("--expires: %w", err)}
				}
				in["expires_at"] = time.Now().Add(life).UTC().Truncate(time.Second)
			}
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				var made admin.NewToken
				err := b.API(c.Context(), "POST", "/api/tokens", in, &made)
				if daemon.AnsweredWith(err, http.StatusBadRequest) || daemon.AnsweredWith(err, http.StatusUnprocessableEntity) {
					return &usageError{c.CommandPath(), err}
				}
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, made)
				}
				_, err = fmt.Fprintf(w, "Token    %s\nName     %s\nScopes   %s\nServers  %s\nExpires  %s\n\nyaya does not show it again.\n%s%s",
					made.Token, made.Name, scopeWords(made.Scopes), serverWords(made.Servers), expiryWords(made.Expires), tokenUse(c.Context(), b, made.Token), tokenCost(c.Context(), b))
				return err
			})
		},
	}
	f := c.Flags()
	f.StringSliceVar(&scopes, "scope", []string{string(auth.ToolsCall)}, "`scope` of the token; repeatable, or separated by commas")
	f.StringArrayVar(&only, "server", nil, "allow only the tools of the MCP server `name`; repeatable (default all servers)")
	f.StringVar(&expires, "expires", "", "`duration` after which the token expires: 12h, 90d, 2w or 1y (default never)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// tokenUse explains how to use a new token.
func tokenUse(ctx context.Context, b *daemon.Backend, token string) string {
	var at admin.Setup
	if !b.Remote || b.API(ctx, "GET", "/api/setup", nil, &at) != nil || at.MCP == "" {
		return "Clients send it in the header \"Authorization: Bearer …\", to the address that yaya serve prints.\n"
	}
	out := fmt.Sprintf("For example:\n  claude mcp add --transport http yaya %s --header \"Authorization: Bearer %s\"\n", daemon.Printable(at.MCP, 300), token)
	if !at.Remote {
		out += "Clients on other machines cannot reach that address. For them, run yaya serve with --tls-cert and --tls-key, or with --behind-proxy.\n"
	}
	return out
}

// tokenCost tells which parts of calls are no longer recorded because tokens exist.
func tokenCost(ctx context.Context, b *daemon.Backend) string {
	const remedy = "To record them: yaya config set traffic.bodies all\n"
	if !b.Remote {
		return "As long as tokens exist, calls are recorded without arguments and results unless traffic.bodies is set. " + remedy
	}
	var page admin.CallPage
	if b.API(ctx, "GET", "/api/traffic?limit=1", nil, &page) != nil || page.Why == "" {
		return "" // the user chose a value, or the record is off
	}
	return "Calls are recorded without arguments and results, because other people can make calls. " + remedy
}

var lifePattern = lazyregexp.New(`^([1-9][0-9]{0,4})(m|h|d|w|y)$`)

// parseLife parses a lifetime as people write it.
func parseLife(s string) (time.Duration, error) {
	m := lifePattern().FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a duration in minutes, hours, days, weeks or years, such as 30m, 12h, 90d, 2w or 1y", s)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	const day = 24 * time.Hour
	unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": day, "w": 7 * day, "y": 365 * day}[m[2]]
	if n > int(10*365*day/unit) {
		return 0, fmt.Errorf("%s is longer than ten years; omit the flag for a token that does not expire", s)
	}
	return time.Duration(n) * unit, nil
}

func serverWords(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return daemon.Printable(strings.Join(names, ", "), 300)
}

func expiryWords(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

func tokenListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the valid and expired tokens, and when each was last used", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				var all []auth.LastingInfo
				if err := b.API(c.Context(), "GET", "/api/tokens", nil, &all); err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, all)
				}
				if len(all) == 0 {
					_, err := fmt.Fprintln(w, "There are no tokens. To create one: yaya token create NAME")
					return err
				}
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "NAME\tPRINCIPAL\tSTATUS\tEXPIRES\tLAST USED\tSERVERS\tSCOPES")
				for _, t := range all {
					used := "never"
					if !t.LastUsed.IsZero() {
						used = t.LastUsed.Local().Format("2006-01-02 15:04")
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, t.Principal, t.Status, expiryWords(t.Expires), used, serverWords(t.Servers), scopeWords(t.Scopes))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func tokenRevokeCommand(g *daemon.Flags) *cobra.Command {
	return deviceAction(g, "revoke NAME", "Revoke a token at once, and close its clients' connections", "is revoked; its clients are disconnected", func(args []string) (string, string, any) {
		return "DELETE", "/api/tokens/" + url.PathEscape(args[0]), nil
	})
}
