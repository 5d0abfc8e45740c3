package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/atomicfile"
)

func tokenCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Make lasting tokens for remote clients, and end them",
		Long: `Make lasting tokens for remote clients, and end them. A client sends its token
as "Authorization: Bearer …". It is good until you revoke it or it expires,
from every address that yaya is reached by. Rules and profiles call whoever has
it token:NAME. A token made again under the name of a revoked one finds nothing
that the earlier one has left; the rules of the name hold for it, too. A device
that can keep a key is better off with yaya device invite.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(tokenCreateCommand(g), tokenListCommand(g), tokenRevokeCommand(g))
	return c
}

func tokenCreateCommand(g *globals) *cobra.Command {
	var scopes, only []string
	var expires string
	var asJSON bool
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token, and show it this once",
		Example: `  yaya token create laptop
  yaya token create ci --server github --expires 90d
  yaya token create dashboard --scope metrics:read,sessions:read`,
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
			return withControl(c.Context(), g, func(b *backend) error {
				var made admin.NewToken
				err := b.api(c.Context(), "POST", "/api/tokens", in, &made)
				if answeredWith(err, http.StatusBadRequest) || answeredWith(err, http.StatusUnprocessableEntity) {
					return &usageError{c.CommandPath(), err}
				}
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, made)
				}
				_, err = fmt.Fprintf(w, "Token    %s\nName     %s\nScopes   %s\nServers  %s\nExpires  %s\n\nIt is not shown again.\n%s%s",
					made.Token, made.Name, scopeWords(made.Scopes), serverWords(made.Servers), expiryWords(made.Expires), tokenUse(c.Context(), b, made.Token), tokenCost(c.Context(), b))
				return err
			})
		},
	}
	f := c.Flags()
	f.StringSliceVar(&scopes, "scope", []string{string(auth.ToolsCall)}, "what it may do (repeatable)")
	f.StringArrayVar(&only, "server", nil, "the MCP server `name` alone (default all); repeatable")
	f.StringVar(&expires, "expires", "", "`when` it ends: 12h, 90d or 1y from now (default never)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// tokenUse says what to do with a token that was made.
func tokenUse(ctx context.Context, b *backend, token string) string {
	var at admin.Setup
	if !b.remote || b.api(ctx, "GET", "/api/setup", nil, &at) != nil || at.MCP == "" {
		return "A client sends it in the header \"Authorization: Bearer …\" to the address that yaya serve prints.\n"
	}
	out := fmt.Sprintf("For example:\n  claude mcp add --transport http yaya %s --header \"Authorization: Bearer %s\"\n", printable(at.MCP, 300), token)
	if !at.Remote {
		out += "Clients on other machines cannot reach that address. For them run yaya serve with --tls-cert and --tls-key, or --behind-proxy.\n"
	}
	return out
}

// tokenCost says what is no longer recorded because there are tokens.
func tokenCost(ctx context.Context, b *backend) string {
	const remedy = "To record them: yaya config set traffic.bodies all\n"
	if !b.remote {
		return "Unless traffic.bodies is set, calls are recorded without arguments and results while there are tokens. " + remedy
	}
	var page admin.CallPage
	if b.api(ctx, "GET", "/api/traffic?limit=1", nil, &page) != nil || page.Why == "" {
		return "" // somebody has chosen, or the record is off
	}
	return "Calls are recorded without arguments and results, because others than you can make them. " + remedy
}

var lifePattern = regexp.MustCompile(`^([1-9][0-9]{0,4})(m|h|d|w|y)$`)

// parseLife reads how long something lasts, as people write it.
func parseLife(s string) (time.Duration, error) {
	m := lifePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a number of minutes, hours, days, weeks or years, such as 30m, 12h, 90d, 2w or 1y", s)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	const day = 24 * time.Hour
	unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": day, "w": 7 * day, "y": 365 * day}[m[2]]
	if n > int(10*365*day/unit) {
		return 0, fmt.Errorf("%s is longer than ten years; leave the flag out for a token that does not expire", s)
	}
	return time.Duration(n) * unit, nil
}

func serverWords(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return printable(strings.Join(names, ", "), 300)
}

func expiryWords(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

func tokenListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the tokens that are not revoked, and when they were used last", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withControl(c.Context(), g, func(b *backend) error {
				var all []auth.LastingInfo
				if err := b.api(c.Context(), "GET", "/api/tokens", nil, &all); err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, all)
				}
				if len(all) == 0 {
					_, err := fmt.Fprintln(w, "There are no tokens. Make one: yaya token create NAME")
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

func tokenRevokeCommand(g *globals) *cobra.Command {
	return deviceAction(g, "revoke NAME", "End a token at once, with what its clients have open", "is revoked: its clients are out", func(args []string) (string, string, any) {
		return "DELETE", "/api/tokens/" + url.PathEscape(args[0]), nil
	})
}

// usesFile keeps when tokens were used last, in the data directory.
const usesFile = "tokens-used.json"

// usesEvery is how often it is written at most.
const usesEvery = time.Minute

// rememberUses writes down when tokens were used last, until the returned function is called.
// What cannot be kept is logged and costs nothing else.
func rememberUses(ctx context.Context, data *os.Root, a *auth.Authority, log zerolog.Logger) (stop func()) {
	save := func() {
		uses, changed := a.LastUses()
		if !changed {
			return
		}
		raw, err := json.Marshal(uses)
		if err == nil {
			_, err = atomicfile.Write(data, usesFile, raw)
		}
		if err != nil {
			log.Warn().Err(err).Msg("it cannot be kept when tokens were used last")
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(usesEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				save()
				return
			case <-tick.C:
				save()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// restoreUses takes over when tokens were used last. A file that cannot be read is
// logged, and written again.
func restoreUses(data *os.Root, a *auth.Authority, log zerolog.Logger) {
	uses, err := readUses(data)
	if err != nil {
		log.Warn().Err(err).Msg("it cannot be read when tokens were used last")
	}
	a.RestoreUses(uses)
}

func readUses(data *os.Root) (map[int64]time.Time, error) {
	f, err := data.Open(usesFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<20)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return nil, err
	}
	var uses map[int64]time.Time
	return uses, json.Unmarshal(raw, &uses)
}
