package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	neturl "net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// remotes is where credentials at other servers are kept, below keys/.
const remotes = "keys/remotes"

// pollEvery is how often a device asks whether it was let in.
const pollEvery = 2 * time.Second

func connectCommand(g *globals) *cobra.Command {
	var code, device, label, fingerprint string
	var forget bool
	c := &cobra.Command{
		Use: "connect [URL]", Short: "Make this machine a device of a yaya elsewhere",
		Long: `Make this machine a device of a yaya elsewhere: with a code that yaya device
invite has shown there, or by asking and waiting until somebody lets it in. Its key
never leaves this machine. Without a URL, list where this machine is known.

A yaya with a certificate of its own making (yaya serve --tls-self-signed) is known by
the fingerprint of its key, which yaya device invite prints there. Another key is
refused, now and later. URL may be the link of its QR code, which has both in it.

A kernel is attached with yaya serve --upstream URL.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			p, err := g.paths()
			if err != nil {
				return err
			}
			data, err := p.openData()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, data.Close()) }()
			w := c.OutOrStdout()
			switch {
			case len(args) == 0:
				return listRemotes(w, data)
			case forget:
				if err := data.Remove(remoteFile(args[0])); err != nil {
					return fmt.Errorf("%s is not known here", args[0])
				}
				_, err := fmt.Fprintf(w, "%s is forgotten; there, yaya device revoke throws this machine out\n", args[0])
				return err
			}
			url, linked, key := fromLink(args[0])
			return connect(c.Context(), w, data, url, cmp.Or(code, linked), device, label, cmp.Or(fingerprint, key))
		},
	}
	c.Flags().StringVar(&code, "code", "", "the code that yaya device invite has shown")
	c.Flags().StringVar(&fingerprint, "fingerprint", "", "of the key of a yaya whose certificate nobody has signed: sha256:…")
	c.Flags().StringVar(&device, "device", "", "id of this device there (default: this machine's name and a few random digits)")
	c.Flags().StringVar(&label, "label", "", "what people are shown (default: this machine's name)")
	c.Flags().BoolVar(&forget, "forget", false, "remove the credentials for URL")
	return c
}

func remoteFile(url string) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(url, "/")))
	return remotes + "/" + hex.EncodeToString(sum[:16]) + ".json"
}

const maxRemote = 64 << 10

func loadRemote(data *os.Root, name string) (client.Credentials, error) {
	var c client.Credentials
	f, err := data.Open(name)
	if err != nil {
		return c, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return c, err
	}
	if !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0 {
		return c, fmt.Errorf("%s: its mode is %v, and others can get at the key in it", name, st.Mode())
	}
	if err := json.NewDecoder(io.LimitReader(f, maxRemote)).Decode(&c); err != nil {
		return c, fmt.Errorf("%s is damaged: %w", name, err)
	}
	if len(c.Key) != 64 {
		return c, fmt.Errorf("%s is damaged: it has no key", name)
	}
	return c, nil
}

func saveRemote(data *os.Root, c client.Credentials) error {
	if err := data.MkdirAll(remotes, 0o700); err != nil {
		return err
	}
	dir, err := data.OpenRoot(remotes)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(c)
	if err == nil {
		_, err = atomicfile.Write(dir, strings.TrimPrefix(remoteFile(c.URL), remotes+"/"), raw)
	}
	return errors.Join(err, dir.Close())
}

func listRemotes(w io.Writer, data *os.Root) error {
	names, err := fs.Glob(data.FS(), remotes+"/*.json")
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := loadRemote(data, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s  as %s (server %.16s)\n", printable(c.URL, 200), printable(c.DeviceID, 128), c.ServerID)
	}
	if len(names) == 0 {
		_, err = fmt.Fprintln(w, "This machine is no device of another yaya. Make it one: yaya connect URL")
	}
	return err
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9-]+`)

// thisMachine is a name for this machine and an id that no other has.
func thisMachine() (name, id string) {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "device"
	}
	name, _, _ = strings.Cut(name, ".")
	return name, strings.Trim(notInID.ReplaceAllString(name, "-"), "-") + "-" + strings.ToLower(rand.Text()[:6])
}

// fromLink takes apart the link of an invitation; another URL stays as it is.
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
	c, err := loadRemote(data, remoteFile(url))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c, err = client.New(url, id, name); err != nil {
			return err
		}
		if fingerprint != "" {
			if err := c.Pin(fingerprint); err != nil {
				return err
			}
		}
		// The key is kept before it is used: what is approved is that key.
		if err := saveRemote(data, c); err != nil {
			return err
		}
	case err != nil:
		return err
	case device != "" && device != c.DeviceID:
		return fmt.Errorf("this machine is known there as %s; yaya connect %s --forget starts over", c.DeviceID, url)
	}
	if fingerprint != "" {
		if err := c.Pin(fingerprint); err != nil {
			return err
		}
	}
	if code != "" {
		err = c.Enrol(ctx, nil, code)
	} else {
		err = waitForApproval(ctx, w, data, &c)
	}
	if err != nil {
		return err
	}
	if err := saveRemote(data, c); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s is a device of %s (server %.16s)\n", printable(c.DeviceID, 128), printable(c.URL, 300), printable(c.ServerID, 128))
	return err
}

// waitForApproval asks until somebody has decided.
func waitForApproval(ctx context.Context, w io.Writer, data *os.Root, c *client.Credentials) error {
	request, err := c.Ask(ctx, nil, "")
	if !errors.Is(err, client.ErrPending) {
		return err
	}
	if err := saveRemote(data, *c); err != nil {
		return err
	}
	fmt.Fprintf(w, "Waiting to be let in. There: yaya device approve %s\n", printable(request, 128))
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
