package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// loginTimeout bounds the time that a person has to sign in.
const loginTimeout = 10 * time.Minute

func mcpLoginCommand(g *daemon.Flags, mcpConfig *[]string) *cobra.Command {
	var paste bool
	c := &cobra.Command{
		Use:   "login SERVER",
		Short: "Sign in to a protected server",
		Long: `Sign in to a protected server. Your browser opens the page of the server's authorization
server, where you authorize yaya. yaya stores the tokens sealed in the data directory and
renews them automatically; a running daemon uses them at once.

With --paste, yaya opens no browser and no port: open the page on any device, and paste
the address that it redirects you to.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithGrants(g, *mcpConfig, args[0], func(s manage.SignIn) error {
				return login(c.Context(), c.InOrStdin(), c.OutOrStdout(), s, paste)
			})
		},
	}
	c.Flags().BoolVar(&paste, "paste", false, "paste the redirect address instead of opening a browser here")
	return c
}

func mcpLogoutCommand(g *daemon.Flags, mcpConfig *[]string) *cobra.Command {
	return &cobra.Command{
		Use: "logout SERVER", Short: "Sign out of a server", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithGrants(g, *mcpConfig, args[0], func(s manage.SignIn) error {
				found, err := s.Forget()
				if err != nil {
					return err
				}
				msg := "signed out of " + s.Server.Name
				if !found {
					msg = "not signed in to " + s.Server.Name
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), daemon.Printable(msg, 300))
				return err
			})
		},
	}
}

func login(ctx context.Context, in io.Reader, out io.Writer, s manage.SignIn, paste bool) error {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	if err := s.Check(); err != nil {
		return err
	}
	var granted bool
	var err error
	if paste {
		granted, err = s.Paste(ctx, in, func(page string) {
			fmt.Fprintf(out, "Open this page, authorize yaya, and paste the address that it redirects you to (that page will not load):\n\n  %s\n\n> ", daemon.Printable(page, 8<<10))
		})
	} else {
		back, berr := manage.OpenCallback(ctx, s.Server)
		if berr != nil {
			return berr
		}
		defer back.Close()
		granted, err = s.Browse(ctx, back, func(page string) {
			fmt.Fprintf(out, "Opening your browser. If it does not open, go to:\n\n  %s\n\n", daemon.Printable(page, 8<<10))
			if err := openPage(page); err != nil {
				fmt.Fprintf(out, "cannot open a browser (%s)\n", daemon.Printable(err.Error(), 300))
			}
		})
	}
	name := daemon.Printable(s.Server.Name, 128)
	if err != nil {
		return fmt.Errorf("sign in to %s: %w", name, err)
	}
	if !granted {
		_, err = fmt.Fprintf(out, "%s does not require sign-in\n", name)
		return err
	}
	_, err = fmt.Fprintf(out, "signed in to %s\n", name)
	return err
}
