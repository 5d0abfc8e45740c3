package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skip2/go-qrcode"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
)

func deviceCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "device", Short: "Let other devices in, and out",
		Long: `Let other devices in, and out: phones, other machines, other kernels. A device
gets in with a code (yaya device invite), or asks and waits until somebody lets it
in (yaya device approve). What it may do are its scopes, resource:action:

  ` + strings.Join(scopeLines(), "\n  ") + `

"default" stands for ` + scopeWords(auth.DefaultScopes()) + `; "admin" for all of them.
Changes work at once, also on connections that are open.`,
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

// scopeLines are all scopes, a few on each line.
func scopeLines() (out []string) {
	all := auth.AllScopes()
	for len(all) > 0 {
		n := min(len(all), 4)
		out = append(out, scopeWords(all[:n]))
		all = all[n:]
	}
	return out
}

func deviceListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the devices, those that wait first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withControl(c.Context(), g, func(b *backend) error {
				var all []auth.DeviceInfo
				if err := b.api(c.Context(), "GET", "/api/devices", nil, &all); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				if len(all) == 0 {
					_, err := fmt.Fprintln(c.OutOrStdout(), "There are no devices. Let one in: yaya device invite")
					return err
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "DEVICE\tLABEL\tSTATUS\tOPEN\tSCOPES")
				for _, d := range all {
					status := d.Status
					if d.RequestID != "" {
						status += " (" + d.RequestID + " from " + d.Peer + ")"
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%s\n", printable(d.ID, 128), printable(d.Label, 64), printable(status, 120), d.Connections, scopeWords(d.Scopes))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func deviceInviteCommand(g *globals) *cobra.Command {
	var label, at string
	var scopes []string
	var asJSON, noQR bool
	c := &cobra.Command{
		Use: "invite", Short: "Make a code that lets one device in",
		Long: `Make a code that lets one device in. It is good once, for ten minutes. On the
other machine: yaya connect URL --code CODE. With --url, a browser gets in by the
link that is printed, too.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if at != "" {
				u, err := url.Parse(at)
				if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
					return fmt.Errorf("--url %q is no http or https URL", at)
				}
				at = strings.TrimSuffix(at, "/")
			}
			return withControl(c.Context(), g, func(b *backend) error {
				var inv admin.Invitation
				if err := b.api(c.Context(), "POST", "/api/devices/invite", map[string]any{"label": label, "scopes": scopes}, &inv); err != nil {
					return err
				}
				w := c.OutOrStdout()
				where, link := "URL", ""
				if at != "" {
					// The code stands behind #, which browsers keep to themselves (R8).
					where, link = at, inv.Link(at)
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
				fmt.Fprintf(w, "Code    %s\nUntil   %s, once\nScopes  %s\n", inv.Code, inv.Expires.Local().Format(time.TimeOnly), scopeWords(inv.Scopes))
				if inv.Fingerprint != "" {
					with = " --fingerprint " + inv.Fingerprint
					fmt.Fprintf(w, "Key     %s\n        of this yaya: a browser has to show the same before you trust its certificate\n", inv.Fingerprint)
				}
				if link != "" {
					fmt.Fprintf(w, "Link    %s\n", link)
				}
				_, err := fmt.Fprintf(w, "\nOn the other machine: yaya connect %s --code %s%s\n", where, inv.Code, with)
				if err == nil && !slices.Contains(inv.Scopes, auth.ApprovalsAnswer) {
					_, err = fmt.Fprintln(w, "\nThe device cannot answer what tools ask. For one of yours: yaya device invite --scopes default,approvals:answer")
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&label, "label", "", "what to call the device, whatever it calls itself")
	c.Flags().StringSliceVar(&scopes, "scopes", []string{"default"}, "what it may do")
	c.Flags().StringVar(&at, "url", "", "`URL` by which the device reaches this yaya; shows a link and a QR code with it")
	c.Flags().BoolVar(&noQR, "no-qr", false, "show no QR code")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func deviceApproveCommand(g *globals) *cobra.Command {
	var scopes []string
	c := &cobra.Command{
		Use: "approve REQUEST", Short: "Let a device in that waits",
		Long: "Let a device in that waits. REQUEST is the id of its request, or its own id (yaya device list).",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withControl(c.Context(), g, func(b *backend) error {
				var d auth.DeviceInfo
				if err := b.api(c.Context(), "POST", "/api/devices/approve", map[string]any{"request": args[0], "scopes": scopes}, &d); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s (%s) may now: %s\n", printable(d.ID, 128), printable(d.Label, 64), scopeWords(d.Scopes))
				return err
			})
		},
	}
	c.Flags().StringSliceVar(&scopes, "scopes", []string{"default"}, "what it may do")
	return c
}

// deviceAction is a command that names a device and prints one line when it is
// done.
func deviceAction(g *globals, use, short, done string, request func(args []string) (method, path string, body any)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withControl(c.Context(), g, func(b *backend) error {
				method, path, body := request(args)
				if err := b.api(c.Context(), method, path, body, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s\n", printable(args[0], 128), done)
				return err
			})
		},
	}
}

func deviceRejectCommand(g *globals) *cobra.Command {
	return deviceAction(g, "reject REQUEST", "Send a device away that waits", "was sent away", func(args []string) (string, string, any) {
		return "POST", "/api/devices/reject", map[string]any{"request": args[0]}
	})
}

func deviceRevokeCommand(g *globals) *cobra.Command {
	var reason string
	c := deviceAction(g, "revoke DEVICE", "Throw a device out, at once", "is out", func(args []string) (string, string, any) {
		return "POST", "/api/devices/" + url.PathEscape(args[0]) + "/revoke", map[string]any{"reason": reason}
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	return c
}

func deviceScopesCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "scopes DEVICE SCOPE…", Short: "Change what a device may do", Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return withControl(c.Context(), g, func(b *backend) error {
				if err := b.api(c.Context(), "PUT", "/api/devices/"+url.PathEscape(args[0])+"/scopes", map[string]any{"scopes": args[1:]}, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s may now: %s\n", printable(args[0], 128), strings.Join(args[1:], ", "))
				return err
			})
		},
	}
}

func deviceRotateCommand(g *globals) *cobra.Command {
	var drop bool
	c := &cobra.Command{
		Use: "rotate-keys", Short: "Sign tokens with a new key",
		Long: `Sign tokens with a new key. Tokens that are out stay good until they expire, in
at most 24 hours; with --drop-earlier they end at once, and devices that have their
key get new ones by themselves.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withControl(c.Context(), g, func(b *backend) error {
				var out struct {
					KeyID string `json:"kid"`
				}
				if err := b.api(c.Context(), "POST", "/api/devices/rotate-keys", map[string]any{"drop_earlier": drop}, &out); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "tokens are signed with key %s now\n", out.KeyID)
				return err
			})
		},
	}
	c.Flags().BoolVar(&drop, "drop-earlier", false, "end all tokens that are out")
	return c
}
