package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skip2/go-qrcode"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func deviceCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "device", Short: "Manage devices: invite, approve, revoke",
		Long: `Manage devices: phones, other machines, other kernels. A device enrolls with a code
(yaya device invite), or asks and waits for approval (yaya device approve). Its scopes,
written resource:action, say what it may do:

  ` + strings.Join(scopeLines(), "\n  ") + `

"default" stands for ` + scopeWords(auth.DefaultScopes()) + `; "admin" for all of them.
Changes take effect at once, even on open connections.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(deviceListCommand(g), deviceInviteCommand(g), deviceApproveCommand(g), deviceRejectCommand(g), deviceRevokeCommand(g), deviceScopesCommand(g), deviceRotateCommand(g))
	return c
}

func scopeWords(scopes []auth.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// scopeLines lists all scopes, a few on each line.
func scopeLines() (out []string) {
	all := auth.AllScopes()
	for len(all) > 0 {
		n := min(len(all), 4)
		out = append(out, scopeWords(all[:n]))
		all = all[n:]
	}
	return out
}

func deviceListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the devices, waiting ones first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				var all []auth.DeviceInfo
				if err := b.API(c.Context(), "GET", "/api/devices", nil, &all); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				if len(all) == 0 {
					_, err := fmt.Fprintln(c.OutOrStdout(), "There are no devices. To add one: yaya device invite")
					return err
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "DEVICE\tLABEL\tSTATUS\tOPEN\tSCOPES")
				for _, d := range all {
					status := d.Status
					if d.RequestID != "" {
						status += " (" + d.RequestID + " from " + d.Peer + ")"
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%s\n", daemon.Printable(d.ID, 128), daemon.Printable(d.Label, 64), daemon.Printable(status, 120), d.Connections, scopeWords(d.Scopes))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// servesTLS reports whether a URL says http where the running yaya serves https. If yaya cannot
// tell, the device finds out itself.
func servesTLS(ctx context.Context, b *daemon.Backend, at string) bool {
	var s admin.Setup
	if !b.Remote || !strings.HasPrefix(at, "http://") || b.API(ctx, "GET", "/api/setup", nil, &s) != nil {
		return false
	}
	given, err := url.Parse(at)
	if err != nil {
		return false
	}
	serves, err := url.Parse(s.URL)
	return err == nil && serves.Scheme == "https" && given.Port() == serves.Port()
}

func deviceInviteCommand(g *daemon.Flags) *cobra.Command {
	var label, at string
	var scopes []string
	var asJSON, noQR bool
	c := &cobra.Command{
		Use: "invite", Short: "Create a code that enrolls one device",
		Long: `Create a code that enrolls one device. The code works once and expires after ten
minutes. On the other machine, run yaya connect URL --code CODE, where URL is an address
of this yaya. The command prints the addresses that yaya knows. With --url, it uses yours
and also prints a link for browsers.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if at != "" {
				u, err := url.Parse(at)
				if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
					return &usageError{c.CommandPath(), fmt.Errorf("--url %q is not an http or https URL", at)}
				}
				if u.Scheme == "http" && !servers.Loopback(at) {
					return &usageError{c.CommandPath(), fmt.Errorf("--url %s: a device on another machine must connect over https: use https://%s if yaya serves TLS there (see yaya serve --help)", at, u.Host)}
				}
				at = strings.TrimSuffix(at, "/")
			}
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				if servesTLS(c.Context(), b, at) {
					return &usageError{c.CommandPath(), fmt.Errorf("--url %s: this yaya serves TLS on that port: use https://%s", at, strings.TrimPrefix(at, "http://"))}
				}
				var inv admin.Invitation
				if err := b.API(c.Context(), "POST", "/api/devices/invite", map[string]any{"label": label, "scopes": scopes}, &inv); err != nil {
					return err
				}
				w := c.OutOrStdout()
				link := ""
				if at != "" {
					// Browsers never send the part after #, so the code stays on the device.
					link = inv.Link(at)
				}
				if asJSON {
					return printJSON(w, struct {
						admin.Invitation
						Link string `json:"link,omitempty"`
					}{inv, link})
				}
				if link != "" && !noQR {
					q, err := qrcode.New(link, qrcode.Medium)
					if err != nil {
						return err
					}
					fmt.Fprint(w, q.ToSmallString(false))
				}
				with := ""
				fmt.Fprintf(w, "Code    %s (works once)\nUntil   %s\nScopes  %s\n", inv.Code, inv.Expires.Local().Format(time.TimeOnly), scopeWords(inv.Scopes))
				if inv.Fingerprint != "" {
					with = " --fingerprint " + inv.Fingerprint
					fmt.Fprintf(w, "Key     %s\n        Compare it with the fingerprint that your browser shows before you trust the certificate.\n", inv.Fingerprint)
				}
				if link != "" {
					fmt.Fprintf(w, "Link    %s\n", link)
				}
				err := sayConnect(c.Context(), w, b, at, "--code "+inv.Code+with)
				if err == nil && !slices.Contains(inv.Scopes, auth.ApprovalsAnswer) {
					_, err = fmt.Fprintln(w, "\nThe device cannot answer approvals. For a device of your own: yaya device invite --scopes default,approvals:answer")
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&label, "label", "", "`name` of the device, in place of the one that it gives itself")
	c.Flags().StringSliceVar(&scopes, "scopes", []string{"default"}, "`scopes` of the device, separated by commas")
	c.Flags().StringVar(&at, "url", "", "`URL` at which the device reaches this yaya; adds a link and a QR code")
	c.Flags().BoolVar(&noQR, "no-qr", false, "do not show a QR code")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func deviceApproveCommand(g *daemon.Flags) *cobra.Command {
	var scopes []string
	c := &cobra.Command{
		Use: "approve REQUEST", Short: "Approve a waiting device",
		Long: "Approve a waiting device. REQUEST is the id of its request, or its own id (yaya device list).",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				var d auth.DeviceInfo
				if err := b.API(c.Context(), "POST", "/api/devices/approve", map[string]any{"request": args[0], "scopes": scopes}, &d); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s (%s) may now: %s\n", daemon.Printable(d.ID, 128), daemon.Printable(d.Label, 64), scopeWords(d.Scopes))
				return err
			})
		},
	}
	c.Flags().StringSliceVar(&scopes, "scopes", []string{"default"}, "`scopes` of the device, separated by commas")
	return c
}

// deviceAction returns a command that acts on one device and prints one line when it is done.
func deviceAction(g *daemon.Flags, use, short, done string, request func(args []string) (method, path string, body any)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				method, path, body := request(args)
				if err := b.API(c.Context(), method, path, body, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s\n", daemon.Printable(args[0], 128), done)
				return err
			})
		},
	}
}

func deviceRejectCommand(g *daemon.Flags) *cobra.Command {
	return deviceAction(g, "reject REQUEST", "Reject a waiting device", "rejected", func(args []string) (string, string, any) {
		return "POST", "/api/devices/reject", map[string]any{"request": args[0]}
	})
}

func deviceRevokeCommand(g *daemon.Flags) *cobra.Command {
	var reason string
	c := deviceAction(g, "revoke DEVICE", "Revoke a device at once", "revoked", func(args []string) (string, string, any) {
		return "POST", "/api/devices/" + url.PathEscape(args[0]) + "/revoke", map[string]any{"reason": reason}
	})
	c.Flags().StringVar(&reason, "reason", "", "`reason` for the audit log")
	return c
}

func deviceScopesCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "scopes DEVICE SCOPE…", Short: "Change what a device may do", Args: cobra.MinimumNArgs(2),
		Long: `Change what a device may do, at once. The scopes that you name replace those that it has;
yaya device --help lists them.`,
		Example: `  yaya device scopes phone default approvals:answer`,
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), "PUT", "/api/devices/"+url.PathEscape(args[0])+"/scopes", map[string]any{"scopes": args[1:]}, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s may now: %s\n", daemon.Printable(args[0], 128), strings.Join(args[1:], ", "))
				return err
			})
		},
	}
}

func deviceRotateCommand(g *daemon.Flags) *cobra.Command {
	var drop bool
	c := &cobra.Command{
		Use: "rotate-keys", Short: "Rotate the key that signs tokens",
		Long: `Rotate the key that signs tokens. Issued tokens stay valid until they expire, within
24 hours. With --drop-earlier, they end at once; enrolled devices fetch new ones
automatically.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				var out struct {
					KeyID string `json:"kid"`
				}
				if err := b.API(c.Context(), "POST", "/api/devices/rotate-keys", map[string]any{"drop_earlier": drop}, &out); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "yaya now signs tokens with key %s\n", out.KeyID)
				return err
			})
		},
	}
	c.Flags().BoolVar(&drop, "drop-earlier", false, "end all issued tokens at once")
	return c
}
