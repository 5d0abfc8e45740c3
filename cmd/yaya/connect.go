package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	neturl "net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/keypin"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// pollEvery is how often a device asks whether it has been approved.
const pollEvery = 2 * time.Second

func connectCommand(g *daemon.Flags) *cobra.Command {
	var code, device, label, fingerprint string
	var forget bool
	c := &cobra.Command{
		Use: "connect [URL]", Short: "Enroll this machine as a device of another yaya",
		Long: `Enroll this machine as a device of another yaya: with the code from yaya device invite
there, or by asking and waiting for approval. The device's key never leaves this machine.
Without a URL, list the yayas that this machine is enrolled with.

A yaya with a self-signed certificate (yaya serve --tls-self-signed) is identified by the
fingerprint of its key, which yaya device invite prints there. Any other key is refused,
now and later. URL may be the link from the QR code, which contains code and fingerprint.

To attach a kernel, run yaya serve --upstream URL.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			p, err := g.Paths()
			if err != nil {
				return err
			}
			data, err := p.OpenData()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, data.Close()) }()
			w := c.OutOrStdout()
			switch {
			case len(args) == 0:
				return listRemotes(w, data)
			case forget:
				if err := data.Remove(daemon.RemoteFile(args[0])); err != nil {
					return fmt.Errorf("this machine is not enrolled with %s", args[0])
				}
				_, err := fmt.Fprintf(w, "removed the credentials for %s; to revoke this device there, run yaya device revoke\n", args[0])
				return err
			}
			url, linked, key := fromLink(args[0])
			if _, err := client.New(url, "x", ""); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if fingerprint != "" {
				if _, err := keypin.Parse(fingerprint); err != nil {
					return &usageError{c.CommandPath(), fmt.Errorf("--fingerprint: %w", err)}
				}
			}
			return connect(c.Context(), w, data, url, cmp.Or(code, linked), device, label, cmp.Or(fingerprint, key))
		},
	}
	c.Flags().StringVar(&code, "code", "", "`code` from yaya device invite")
	c.Flags().StringVar(&fingerprint, "fingerprint", "", "`fingerprint` of the key of a yaya with a self-signed certificate: sha256:…")
	c.Flags().StringVar(&device, "device", "", "`id` of this device there (default: this machine's name and a few random digits)")
	c.Flags().StringVar(&label, "label", "", "display `name` of this device (default: this machine's name)")
	c.Flags().BoolVar(&forget, "forget", false, "remove the credentials for URL")
	return c
}

func listRemotes(w io.Writer, data *os.Root) error {
	names, err := fs.Glob(data.FS(), daemon.Remotes+"/*.json")
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := daemon.LoadRemote(data, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s  as %s (server %.16s)\n", daemon.Printable(c.URL, 200), daemon.Printable(c.DeviceID, 128), c.ServerID)
	}
	if len(names) == 0 {
		_, err = fmt.Fprintln(w, "This machine is not enrolled with another yaya. To enroll it: yaya connect URL")
	}
	return err
}

var notInID = lazyregexp.New(`[^A-Za-z0-9-]+`)

// thisMachine returns a name for this machine and a unique id.
func thisMachine() (name, id string) {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "device"
	}
	name, _, _ = strings.Cut(name, ".")
	return name, strings.Trim(notInID().ReplaceAllString(name, "-"), "-") + "-" + strings.ToLower(rand.Text()[:6])
}

// fromLink splits the link of an invitation into its parts; it returns any other URL unchanged.
func fromLink(at string) (url, code, key string) {
	url, fragment, _ := strings.Cut(at, "#")
	values, err := neturl.ParseQuery(fragment)
	if err != nil || values.Get("code") == "" {
		return at, "", ""
	}
	return url, values.Get("code"), values.Get("key")
}

func connect(ctx context.Context, w io.Writer, data *os.Root, url, code, device, label, fingerprint string) error {
	name, id := thisMachine()
	if device != "" {
		id = device
	}
	if label != "" {
		name = label
	}
	c, err := daemon.LoadRemote(data, daemon.RemoteFile(url))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c, err = client.New(url, id, name); err != nil {
			return err
		}
		// Store the key before use: the approval is for exactly this key. A fingerprint is stored
		// once the server has proved that it is the right one.
		if err := daemon.SaveRemote(data, c); err != nil {
			return err
		}
	case err != nil:
		return err
	case device != "" && device != c.DeviceID:
		return fmt.Errorf("this machine is already enrolled there as %s (to start over, run yaya connect %s --forget)", c.DeviceID, url)
	}
	if fingerprint != "" {
		if err := c.Pin(fingerprint); err != nil {
			return err
		}
	}
	if code != "" {
		err = c.Enroll(ctx, nil, code)
	} else {
		err = waitForApproval(ctx, w, data, &c)
	}
	if err != nil {
		return err
	}
	if err := daemon.SaveRemote(data, c); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s is enrolled with %s (server %.16s)\n", daemon.Printable(c.DeviceID, 128), daemon.Printable(c.URL, 300), daemon.Printable(c.ServerID, 128))
	return err
}

// waitForApproval polls until the request is approved or rejected.
func waitForApproval(ctx context.Context, w io.Writer, data *os.Root, c *client.Credentials) error {
	request, err := c.Ask(ctx, nil, "")
	if !errors.Is(err, client.ErrPending) {
		return err
	}
	if err := daemon.SaveRemote(data, *c); err != nil {
		return err
	}
	fmt.Fprintf(w, "Waiting for approval. On the other machine: yaya device approve %s\n", daemon.Printable(request, 128))
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if request, err = c.Ask(ctx, nil, request); !errors.Is(err, client.ErrPending) {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
