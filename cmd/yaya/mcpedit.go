package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// server returns one of the configured servers.
func (b *backend) server(ctx context.Context, name string) (admin.Server, error) {
	var all []admin.Server
	if err := b.api(ctx, http.MethodGet, "/api/mcp/servers", nil, &all); err != nil {
		return admin.Server{}, err
	}
	i := slices.IndexFunc(all, func(s admin.Server) bool { return s.Name == name })
	if i < 0 {
		return admin.Server{}, fmt.Errorf("there is no server %q: yaya mcp list shows those that there are", name)
	}
	return all[i], nil
}

func mcpGetCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "get NAME", Short: "Show one server: state, last failure, masked configuration", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withServers(c.Context(), g, func(b *backend) error {
				s, err := b.server(c.Context(), args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), s)
				}
				return showServer(c.OutOrStdout(), s)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func showServer(w io.Writer, s admin.Server) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(key, value string) {
		if value != "" {
			fmt.Fprintf(tw, "%s\t%s\n", key, printable(value, 1000))
		}
	}
	row("server", s.Name)
	row("state", s.State)
	row("reason", s.Reason)
	if !s.Since.IsZero() {
		row("since", s.Since.Local().Format(time.DateTime))
		row("tools", fmt.Sprint(s.Tools))
		row("restarts", fmt.Sprint(s.Restarts))
		row("calls", fmt.Sprintf("%.0f, %.0f of them failed", s.Calls.Total, s.Calls.Errors))
	}
	said := s.Reason // which the others may repeat
	if !strings.Contains(said, s.LastError) {
		row("last failure", s.LastError)
		said += "\n" + s.LastError
	}
	row("transport", s.Transport)
	row("runs", s.Endpoint)
	row("file", s.File)
	if b := s.Sandbox; b != nil {
		row("sandbox", b.Allowed)
		if b.Backend != "" {
			row("enforced", fmt.Sprintf("%s (back end %s)", cmp.Or(strings.Join(b.Enforced, ", "), "nothing"), b.Backend))
		}
		for i, m := range b.Missing {
			row([]string{"not enforced", " "}[min(i, 1)], m)
		}
		for i, m := range b.Breaks {
			row([]string{"does not work", " "}[min(i, 1)], m)
		}
		for i, d := range b.Denied {
			row([]string{"kept from", " "}[min(i, 1)], d.What)
			if d.Allow != "" {
				row(" ", "allow it: "+d.Allow)
			}
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	shown := 0
	for _, line := range slices.Compact(slices.Clone(s.Diagnostics)) {
		if strings.Contains(said, line) {
			continue
		}
		if shown++; shown == 1 {
			fmt.Fprintln(w, "\nbefore that:")
		}
		fmt.Fprintf(w, "  %s\n", printable(line, 300))
	}
	if string(s.Config) == "null" {
		return nil
	}
	fmt.Fprintln(w, "\nconfiguration, secrets masked:")
	_, err := fmt.Fprintf(w, "%s\n", pretty(s.Config))
	return err
}

// pretty writes JSON for people: indented, and without escapes that only HTML needs.
func pretty(raw json.RawMessage) []byte {
	var v any
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if json.Unmarshal(raw, &v) != nil || enc.Encode(v) != nil {
		return plainJSON(raw)
	}
	return plainJSON(bytes.TrimSpace(out.Bytes()))
}

func mcpEnableCommand(g *globals) *cobra.Command {
	return switchCommand(g, "enable", "Switch a server on", true, "enabled")
}

func mcpDisableCommand(g *globals) *cobra.Command {
	return switchCommand(g, "disable", "Stop a server, and leave it configured", false, "disabled")
}

func switchCommand(g *globals, verb, short string, on bool, done string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withServers(c.Context(), g, func(b *backend) error {
				if err := b.api(c.Context(), http.MethodPatch, atServer(args[0]), map[string]bool{"enabled": on}, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s\n", done, printable(args[0], 128))
				return err
			})
		},
	}
}

func mcpRestartCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "restart NAME", Short: "Stop a server of the running yaya, and start it again", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withServers(c.Context(), g, func(b *backend) error {
				if err := b.api(c.Context(), http.MethodPost, atServer(args[0])+"/restart", nil, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "restarted %s: yaya mcp list shows how it is\n", printable(args[0], 128))
				return err
			})
		},
	}
}

func mcpEditCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "edit NAME", Short: "Edit the configuration of a server in $VISUAL or $EDITOR", Args: cobra.ExactArgs(1),
		Long: `Edit the configuration of a server in $VISUAL, $EDITOR or vi. You edit a copy,
which is checked before anything changes; a running yaya then uses it at once.
Secrets are masked. Leave a mask to keep the secret; if you change the command line or
the address as well, enter the secret again. If the server was changed meanwhile, your
edit is refused and your copy is kept.`,
		RunE: func(c *cobra.Command, args []string) error {
			return editServer(c, g, args[0])
		},
	}
}

// editServer lets the user edit a copy of a server's entry, and applies it. The data
// directory is not locked meanwhile.
func editServer(c *cobra.Command, g *globals, name string) (err error) {
	ctx := c.Context()
	var was admin.Server
	if err := withServers(ctx, g, func(b *backend) (err error) {
		was, err = b.server(ctx, name)
		return err
	}); err != nil {
		return err
	}
	switch {
	case string(was.Config) == "null":
		return fmt.Errorf("the entry of %q cannot be read: correct it in %s: %s", name, was.File, printable(was.Reason, 300))
	case !was.Editable:
		return fmt.Errorf("%q is configured in %s: edit that file", name, was.File)
	}
	dir, err := os.MkdirTemp("", "yaya-edit-")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "server.json")
	before := append(pretty(was.Config), '\n')
	if err := atomicfile.Replace(file, before); err != nil {
		return err
	}
	keep := false
	defer func() {
		if keep {
			err = fmt.Errorf("%w (what you have written is in %s)", err, file)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir)) //nolint:forbidigo // this command's own
	}()
	for {
		if err := runEditor(c, file); err != nil {
			return err
		}
		after, _, err := readFile(file)
		if err != nil {
			return err
		}
		if bytes.Equal(after, before) {
			_, err := fmt.Fprintln(c.OutOrStdout(), "Nothing was changed.")
			return err
		}
		err = applyEdit(ctx, g, c.OutOrStdout(), was, after)
		if err == nil {
			return nil
		}
		keep = true
		if _, wrong := errors.AsType[*badEntry](err); !wrong {
			return err
		}
		if !confirm(ctx, c.InOrStdin(), c.ErrOrStderr(), printable(err.Error(), 1000)+"\nEdit it again?") {
			return err
		}
		keep = false
	}
}

// badEntry is a mistake in an entry, which can be corrected.
type badEntry struct{ error }

func (e *badEntry) Unwrap() error { return e.error }

// applyEdit makes an edited entry the server's configuration.
func applyEdit(ctx context.Context, g *globals, w io.Writer, was admin.Server, text []byte) error {
	var entry map[string]json.RawMessage
	if err := json.Unmarshal(text, &entry); err != nil {
		return &badEntry{fmt.Errorf("this is not a JSON object: %w", err)}
	}
	if _, _, err := serverEntry(was.Name, entry); err != nil {
		return &badEntry{err}
	}
	return withServers(ctx, g, func(b *backend) error {
		ch, err := b.change(ctx, http.MethodPut, atServer(was.Name), map[string]any{"config": entry, "revision": was.Revision})
		if answeredWith(err, http.StatusBadRequest) {
			return &badEntry{err}
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "changed %s: %s\n", printable(was.Name, 128), printable(ch.Runs, 500))
		showNotes(w, ch)
		return nil
	})
}

// runEditor runs the user's editor on a file and waits for it.
func runEditor(c *cobra.Command, file string) error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	// The variables hold a command line, as every program takes them.
	cmd := exec.CommandContext(c.Context(), "/bin/sh", "-c", editor+` "$1"`, "sh", file) //nolint:forbidigo,gosec // the user's own editor, on the user's terminal
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q failed: %w", editor, err)
	}
	return nil
}
