package manage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// SignIn is how a person authorizes yaya at a protected server.
type SignIn struct {
	Server  servers.Server // expanded
	Grants  *oauth.Store   // where what is granted is kept
	Version string         // introduces yaya when it registers
}

// Remote finds a server elsewhere by its name, and expands it.
func (l *Loaded) Remote(name string, scope servers.Scope) (servers.Server, error) {
	for _, s := range l.Servers {
		if s.Name != name {
			continue
		}
		x, _, err := s.Expand(scope)
		if err != nil {
			return servers.Server{}, fmt.Errorf("server %q: %w", name, err)
		}
		if x.Transport == servers.Stdio {
			return servers.Server{}, fmt.Errorf("server %q is a local command and needs no sign-in", name)
		}
		return x, nil
	}
	return servers.Server{}, fmt.Errorf("there is no server %q (see: yaya mcp list)", name)
}

// Check reports that nobody has to sign in at the server.
func (s SignIn) Check() error {
	if s.Server.OAuth != nil && s.Server.OAuth.Grant != "" && s.Server.OAuth.Grant != servers.AuthorizationCode {
		return fmt.Errorf("server %q is configured for the grant %s, which needs no sign-in", s.Server.Name, s.Server.OAuth.Grant)
	}
	return nil
}

// Forget forgets what was granted, and reports whether anything was.
func (s SignIn) Forget() (bool, error) { return s.Grants.Forget(s.Server.URL) }

// Browse waits until a browser that has opened the page that it shows is sent back. It
// reports false when the server asks for no authorization.
func (s SignIn) Browse(ctx context.Context, back *Callback, show func(page string)) (granted bool, err error) {
	return s.run(ctx, back.url, func(ctx context.Context, page string) (oauth.Answer, error) {
		show(page)
		return back.wait(ctx)
	})
}

// Paste is [SignIn.Browse] for a browser elsewhere: in has the address that it was sent to.
func (s SignIn) Paste(ctx context.Context, in io.Reader, show func(page string)) (granted bool, err error) {
	// Nobody listens there: what counts is the browser's address bar.
	return s.run(ctx, "http://127.0.0.1:8788/callback", func(_ context.Context, page string) (oauth.Answer, error) {
		show(page)
		return pasted(in)
	})
}

func (s SignIn) run(ctx context.Context, redirect string, ask func(context.Context, string) (oauth.Answer, error)) (bool, error) {
	base := upstream.NewTransport()
	defer base.CloseIdleConnections()
	t := mcpbridge.Authorization(s.Server, s.Grants)
	t.Next = base
	return oauth.Login{Transport: t, Version: s.Version, Redirect: redirect, Ask: ask}.Run(ctx)
}

func pasted(in io.Reader) (oauth.Answer, error) {
	line, err := bufio.NewReader(io.LimitReader(in, 64<<10)).ReadString('\n')
	if err != nil && line == "" {
		return oauth.Answer{}, errors.New("nothing was pasted")
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return oauth.Answer{}, errors.New("the pasted text is not an address")
	}
	return oauth.ReadAnswer(u)
}

// Callback receives the browser that is sent back with the answer. It listens on this machine
// alone until it is closed.
type Callback struct {
	url    string
	srv    *http.Server
	answer chan result
	done   chan struct{}
}

type result struct {
	a   oauth.Answer
	err error
}

// OpenCallback listens where the configuration of a server says, or anywhere.
func OpenCallback(ctx context.Context, s servers.Server) (*Callback, error) {
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
	c := &Callback{url: "http://" + l.Addr().String() + "/callback", answer: make(chan result, 1), done: make(chan struct{})}
	c.srv = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(c.serve)}
	go func() {
		defer close(c.done)
		_ = c.srv.Serve(l) // ends with Close
	}()
	return c, nil
}

func (c *Callback) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || (!r.URL.Query().Has("code") && !r.URL.Query().Has("error")) {
		http.NotFound(w, r)
		return
	}
	a, err := oauth.ReadAnswer(r.URL)
	select {
	case c.answer <- result{a, err}:
	default: // an answer is there already
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	_, _ = io.WriteString(w, "yaya received the answer. You can close this page and return to the terminal.\n")
}

func (c *Callback) wait(ctx context.Context) (oauth.Answer, error) {
	select {
	case r := <-c.answer:
		return r.a, r.err
	case <-ctx.Done():
		return oauth.Answer{}, errors.New("timed out waiting for sign-in")
	}
}

// Close stops listening and waits for that.
func (c *Callback) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.srv.Shutdown(ctx) != nil {
		_ = c.srv.Close()
	}
	<-c.done
}
