package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// loginTimeout is how long a person may take.
const loginTimeout = 10 * time.Minute

func mcpLoginCommand(g *globals, mcpConfig *[]string) *cobra.Command {
	var paste bool
	c := &cobra.Command{
		Use:   "login SERVER",
		Short: "Authorize yaya at a protected server",
		Long: `Authorize yaya at a protected server: the browser opens the page of the server's
authorization server, where you agree. The tokens are kept sealed in the data
directory and renewed without asking; a running daemon uses them at once.

With --paste nothing is opened and nothing listens: open the page on any device,
and paste the address that it sends you to.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withGrants(g, *mcpConfig, args[0], func(s servers.Server, grants *oauth.Store) error {
				return login(c.Context(), c.InOrStdin(), c.OutOrStdout(), s, grants, paste)
			})
		},
	}
	c.Flags().BoolVar(&paste, "paste", false, "paste the answer instead of opening a browser here")
	return c
}

func mcpLogoutCommand(g *globals, mcpConfig *[]string) *cobra.Command {
	return &cobra.Command{
		Use: "logout SERVER", Short: "Forget the authorization at a server", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withGrants(g, *mcpConfig, args[0], func(s servers.Server, grants *oauth.Store) error {
				found, err := grants.Forget(s.URL)
				if err != nil {
					return err
				}
				msg := "forgot the authorization at " + s.Name
				if !found {
					msg = "there was no authorization at " + s.Name
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), printable(msg, 300))
				return err
			})
		},
	}
}

// withGrants runs f with a configured remote server and the place of its grants.
func withGrants(g *globals, mcpConfig []string, name string, f func(servers.Server, *oauth.Store) error) (err error) {
	p, err := g.paths()
	if err != nil {
		return err
	}
	l, err := loadServers(p, mcpConfig)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	data, settings, err := g.open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	known, err := p.folders(data, settings)
	if err != nil {
		return err
	}
	if err := l.here(mcpConfig, dir, known); err != nil {
		return err
	}
	for _, s := range l.servers {
		if s.Name != name {
			continue
		}
		x, _, err := s.Expand(servers.Scope{Env: os.LookupEnv, Home: p.home, Workspace: dir, Secret: g.vault.Get})
		if err != nil {
			return fmt.Errorf("server %q: %w", name, err)
		}
		if x.Transport == servers.Stdio {
			return fmt.Errorf("server %q is a command on this machine; there is nothing to log in to", name)
		}
		return f(x, oauth.NewStore(data, g.vault))
	}
	return fmt.Errorf("there is no server %q; yaya mcp list shows them", name)
}

func login(ctx context.Context, in io.Reader, out io.Writer, s servers.Server, grants *oauth.Store, paste bool) error {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	base := upstream.NewTransport()
	defer base.CloseIdleConnections()
	t := mcpbridge.Authorization(s, grants)
	t.Next = base
	if s.OAuth != nil && s.OAuth.Grant != "" && s.OAuth.Grant != servers.AuthorizationCode {
		return fmt.Errorf("server %q is configured for the grant %s, which needs no login", s.Name, s.OAuth.Grant)
	}
	l := oauth.Login{Transport: t, Version: yayaVersion()}
	if paste {
		l.Redirect = "http://127.0.0.1:8788/callback" // nobody listens: its address bar is what counts
		l.Ask = func(_ context.Context, page string) (oauth.Answer, error) {
			fmt.Fprintf(out, "Open this page, agree, and paste the address that you are sent to (the page itself will not load):\n\n  %s\n\n> ", printable(page, 8<<10))
			return pasted(in)
		}
	} else {
		b, err := newCallback(ctx, s)
		if err != nil {
			return err
		}
		defer b.close()
		l.Redirect = b.url
		l.Ask = func(ctx context.Context, page string) (oauth.Answer, error) {
			fmt.Fprintf(out, "Opening the page on which you agree. If nothing opens, open it yourself:\n\n  %s\n\n", printable(page, 8<<10))
			if err := browse(ctx, page); err != nil {
				fmt.Fprintf(out, "no browser could be opened (%s)\n", printable(err.Error(), 300))
			}
			return b.wait(ctx)
		}
	}
	granted, err := l.Run(ctx)
	if err != nil {
		return fmt.Errorf("log in to %s: %w", printable(s.Name, 128), err)
	}
	if !granted {
		_, err = fmt.Fprintf(out, "%s does not ask for authorization\n", printable(s.Name, 128))
		return err
	}
	_, err = fmt.Fprintf(out, "yaya is authorized at %s\n", printable(s.Name, 128))
	return err
}

func pasted(in io.Reader) (oauth.Answer, error) {
	line, err := bufio.NewReader(io.LimitReader(in, 64<<10)).ReadString('\n')
	if err != nil && line == "" {
		return oauth.Answer{}, errors.New("nothing was pasted")
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return oauth.Answer{}, errors.New("what was pasted is no address")
	}
	return oauth.ReadAnswer(u)
}

// callback is where the browser is sent back to.
type callback struct {
	url    string
	srv    *http.Server
	answer chan result
	done   chan struct{}
}

type result struct {
	a   oauth.Answer
	err error
}

func newCallback(ctx context.Context, s servers.Server) (*callback, error) {
	port := 0
	if s.OAuth != nil {
		port = s.OAuth.CallbackPort
		if u, err := url.Parse(s.OAuth.RedirectURI); err == nil && port == 0 {
			port, _ = strconv.Atoi(u.Port())
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	c := &callback{url: "http://" + l.Addr().String() + "/callback", answer: make(chan result, 1), done: make(chan struct{})}
	c.srv = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(c.serve)}
	go func() {
		defer close(c.done)
		_ = c.srv.Serve(l) // ends with close
	}()
	return c, nil
}

func (c *callback) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || (!r.URL.Query().Has("code") && !r.URL.Query().Has("error")) {
		http.NotFound(w, r)
		return
	}
	a, err := oauth.ReadAnswer(r.URL)
	select {
	case c.answer <- result{a, err}:
	default: // there was one
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	_, _ = io.WriteString(w, "yaya has the answer. You can close this page and go back to the terminal.\n")
}

func (c *callback) wait(ctx context.Context) (oauth.Answer, error) {
	select {
	case r := <-c.answer:
		return r.a, r.err
	case <-ctx.Done():
		return oauth.Answer{}, errors.New("nobody has agreed in time")
	}
}

func (c *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.srv.Shutdown(ctx) != nil {
		_ = c.srv.Close()
	}
	<-c.done
}

// browse opens a page with the program that BROWSER names, or the system's. The
// page's URL has been checked, and no shell sees it (UP-27).
func browse(ctx context.Context, page string) error {
	name, args := "xdg-open", []string{page}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
	}
	if b := os.Getenv("BROWSER"); b != "" {
		name, args = b, []string{page}
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:forbidigo,gosec // the user's browser
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it lives as long as its user wants
	return nil
}
