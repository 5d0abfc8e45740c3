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

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// serverNamed returns one of the configured servers.
func serverNamed(ctx context.Context, b *daemon.Backend, name string) (admin.Server, error) {
	var all []admin.Server
	if err := b.API(ctx, http.MethodGet, "/api/mcp/servers", nil, &all); err != nil {
		return admin.Server{}, err
	}
	return named(all, name, fmt.Errorf("there is no server %q (see: yaya mcp list)", name))
}

// named returns the server of a name, or an error without one.
func named(all []admin.Server, name string, none error) (admin.Server, error) {
	if i := slices.IndexFunc(all, func(s admin.Server) bool { return s.Name == name }); i >= 0 {
		return all[i], nil
	}
	return admin.Server{}, none
}

func mcpGetCommand(g *daemon.Flags, mcpConfig *[]string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "get NAME", Short: "Show one server: state, last failure, masked configuration", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			show := func(s admin.Server, err error) error {
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(c.OutOrStdout(), s)
				}
				return showServer(c.OutOrStdout(), s)
			}
			if files := *mcpConfig; len(files) > 0 {
				all, err := daemon.ServersIn(c.Context(), g, files)
				if err != nil {
					return err
				}
				return show(named(all, args[0], fmt.Errorf("there is no server %q in %s", args[0], strings.Join(files, ", "))))
			}
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				return show(serverNamed(c.Context(), b, args[0]))
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
			fmt.Fprintf(tw, "%s\t%s\n", key, daemon.Printable(value, 1000))
		}
	}
	row("server", s.Name)
	row("state", s.State)
	row("reason", s.Reason)
	if !s.Since.IsZero() {
		row("since", s.Since.Local().Format(time.DateTime))
		row("tools", fmt.Sprint(s.Tools))
		row("restarts", fmt.Sprint(s.Restarts))
		row("calls", fmt.Sprintf("%.0f, of which %.0f failed or were refused", s.Calls.Total, s.Calls.Errors))
	}
	said := s.Reason // the other fields may repeat it
	if !strings.Contains(said, s.LastError) {
		row("last failure", s.LastError)
		said += "\n" + s.LastError
	}
	row("transport", s.Transport)
	row("runs", s.Endpoint)
	var entry struct { // the references to secrets in it are not masked
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	if json.Unmarshal(s.Config, &entry) == nil {
		row("warning", servers.Server{Command: entry.Command, Args: entry.Args}.OpenSecrets())
	}
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
				row(" ", "to allow it: "+d.Allow)
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
		fmt.Fprintf(w, "  %s\n", daemon.Printable(line, 300))
	}
	if string(s.Config) == "null" {
		return nil
	}
	fmt.Fprintln(w, "\nconfiguration, secrets masked:")
	_, err := fmt.Fprintf(w, "%s\n", pretty(s.Config))
	return err
}

// pretty formats JSON for people: indented, and without escapes that only HTML needs.
func pretty(raw json.RawMessage) []byte {
	var v any
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if json.Unmarshal(raw, &v) != nil || enc.Encode(v) != nil {
		return daemon.PlainJSON(raw)
	}
	return daemon.PlainJSON(bytes.TrimSpace(out.Bytes()))
}

func mcpEnableCommand(g *daemon.Flags) *cobra.Command {
	return switchCommand(g, "enable", "Enable a server", true, "enabled")
}

func mcpDisableCommand(g *daemon.Flags) *cobra.Command {
	return switchCommand(g, "disable", "Disable a server: stop it, but keep its configuration", false, "disabled")
}

func switchCommand(g *daemon.Flags, verb, short string, on bool, done string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), http.MethodPatch, atServer(args[0]), map[string]bool{"enabled": on}, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s\n", done, daemon.Printable(args[0], 128))
				return err
			})
		},
	}
}

func mcpRestartCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "restart NAME", Short: "Restart a server of the running yaya", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), http.MethodPost, atServer(args[0])+"/restart", nil, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "restarted %s (see: yaya mcp list)\n", daemon.Printable(args[0], 128))
				return err
			})
		},
	}
}

func mcpEditCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "edit NAME", Short: "Edit the configuration of a server in $VISUAL or $EDITOR", Args: cobra.ExactArgs(1),
		Long: `Edit the configuration of a server in $VISUAL, $EDITOR or vi. You edit a copy. yaya
validates it before anything changes; a running yaya then uses it at once. Secrets are
masked: leave a mask in place to keep the secret. If you also change the command line or
the address, enter the secret again. If the server changed in the meantime, yaya refuses
your edit and keeps your copy.`,
		RunE: func(c *cobra.Command, args []string) error {
			return editServer(c, g, args[0])
		},
	}
}

// editServer lets the user edit a copy of a server's entry, and applies it. It does not lock
// the data directory during the edit.
func editServer(c *cobra.Command, g *daemon.Flags, name string) (err error) {
	ctx := c.Context()
	var was admin.Server
	if err := daemon.WithServers(ctx, g, func(b *daemon.Backend) (err error) {
		was, err = serverNamed(ctx, b, name)
		return err
	}); err != nil {
		return err
	}
	switch {
	case string(was.Config) == "null":
		return fmt.Errorf("the entry of %q cannot be read: correct it in %s: %s", name, was.File, daemon.Printable(was.Reason, 300))
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
			err = fmt.Errorf("%w (your text is in %s)", err, file)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir)) //nolint:forbidigo // a file of this command's own
	}()
	for {
		if err := runEditor(c, file); err != nil {
			return err
		}
		after, _, err := userfile.Read(file)
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
		if !confirm(ctx, c.InOrStdin(), c.ErrOrStderr(), daemon.Printable(err.Error(), 1000)+"\nEdit it again?") {
			return err
		}
		keep = false
	}
}

// badEntry is a mistake in an entry that the user can correct.
type badEntry struct{ error }

func (e *badEntry) Unwrap() error { return e.error }

// applyEdit replaces the server's configuration with an edited entry.
func applyEdit(ctx context.Context, g *daemon.Flags, w io.Writer, was admin.Server, text []byte) error {
	var entry map[string]json.RawMessage
	if err := json.Unmarshal(text, &entry); err != nil {
		return &badEntry{fmt.Errorf("this is not a JSON object: %w", err)}
	}
	if _, _, err := manage.Entry(was.Name, entry); err != nil {
		return &badEntry{err}
	}
	return daemon.WithServers(ctx, g, func(b *daemon.Backend) error {
		ch, err := proposeChange(ctx, b, http.MethodPut, atServer(was.Name), map[string]any{"config": entry, "revision": was.Revision})
		if daemon.AnsweredWith(err, http.StatusBadRequest) {
			return &badEntry{err}
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "changed %s: %s\n", daemon.Printable(was.Name, 128), daemon.Printable(ch.Runs, 500))
		showNotes(w, ch)
		return nil
	})
}

// runEditor runs the user's editor on a file and waits for it.
func runEditor(c *cobra.Command, file string) error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	// By convention, the variables hold a command line.
	cmd := exec.CommandContext(c.Context(), "/bin/sh", "-c", editor+` "$1"`, "sh", file) //nolint:forbidigo,gosec // the user's own editor, on the user's terminal
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q failed: %w", editor, err)
	}
	return nil
}
