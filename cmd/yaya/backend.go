package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
)

// backend is whoever runs the servers: the daemon, through its socket, or this
// process, for the length of one command. Both answer the same requests.
type backend struct {
	client *http.Client
	remote bool // the daemon
	ids    int64
}

// daemonTimeout is how long a daemon may take to say that it is there.
const daemonTimeout = 2 * time.Second

// daemon returns the backend of a running daemon, if there is one.
func daemon(ctx context.Context, p paths) (*backend, bool) {
	b := &backend{remote: true, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", p.socket())
		},
		MaxIdleConnsPerHost: 64,
	}}}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	if err := b.getJSON(ctx, "/health", new(struct{})); err != nil {
		b.client.CloseIdleConnections()
		return nil, false
	}
	return b, true
}

// beside runs f with the daemon, and reports whether there is one.
func beside(ctx context.Context, p paths, f func(*backend) error) (done bool, err error) {
	b, ok := daemon(ctx, p)
	if !ok {
		return false, nil
	}
	defer b.client.CloseIdleConnections()
	return true, f(b)
}

// here returns the backend of this process's own API.
func here(h http.Handler) *backend {
	return &backend{client: &http.Client{Transport: inProcess{asOwner(h)}}}
}

// otherVersion returns why a daemon does not know what this yaya asks for, nil if it is
// the same version.
func (b *backend) otherVersion(ctx context.Context) error {
	var r struct {
		Version string `json:"version"`
	}
	if b.remote {
		_ = b.getJSON(ctx, "/status", &r) // who does not say its version is not blamed for it
	}
	if r.Version == "" || r.Version == yayaVersion() {
		return nil
	}
	return fmt.Errorf("the running yaya is version %s, and this is yaya %s: restart it (end it, then yaya serve)", printable(r.Version, 60), yayaVersion())
}

// withBackend runs f with the daemon, unless files are named, else with servers
// of its own, which are stopped when f returns.
func withBackend(ctx context.Context, g *globals, mcpConfig []string, f func(*backend) error) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if len(mcpConfig) == 0 {
		if done, err := beside(ctx, p, f); done {
			return err
		}
	}
	// What goes wrong with a server is part of the answer, not of a log.
	log := zerolog.Nop()
	if g.verbose {
		log = g.newLog(os.Stderr)
	}
	return withApp(ctx, g, p, mcpConfig, log, false, func(a *app) error {
		a.waitSettled(ctx, os.Stderr)
		mux := http.NewServeMux()
		mux.Handle("/mcp", a.mcp)
		mux.Handle("/mcp/{profile}", a.mcp)
		mux.Handle("POST /cli/mcp", a.mcp.CommandLine())
		mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(a.report("", a.configured)) // into memory
		})
		return f(here(mux))
	}, func(c *appConfig) { c.lenient = true })
}

// inProcess answers requests with a handler, in memory.
type inProcess struct{ h http.Handler }

type memory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (m *memory) Header() http.Header         { return m.header }
func (m *memory) Write(b []byte) (int, error) { return m.body.Write(b) }
func (m *memory) WriteHeader(status int)      { m.status = status }
func (m *memory) Flush()                      {}

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	m := &memory{header: http.Header{}, status: http.StatusOK}
	t.h.ServeHTTP(m, r)
	return &http.Response{StatusCode: m.status, Header: m.header, Body: io.NopCloser(&m.body), ContentLength: int64(m.body.Len()), Request: r}, nil
}

const maxAnswer = 64 << 20

func (b *backend) getJSON(ctx context.Context, path string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://yaya"+path, nil)
	if err != nil {
		return err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusedBy(resp, path)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(v)
}

// rpc sends one request of the command line in the modern era and returns its result.
func (b *backend) rpc(ctx context.Context, method, name string, params map[string]any, onNote func(*jsonrpc.Message)) (json.RawMessage, error) {
	return b.rpcAt(ctx, "/cli/mcp", method, name, params, onNote)
}

// httpRefusal is an error that came with a status of its own.
type httpRefusal struct {
	error
	status int
}

func (e *httpRefusal) Unwrap() error { return e.error }

// rpcAt sends one request to an endpoint.
func (b *backend) rpcAt(ctx context.Context, path, method, name string, params map[string]any, onNote func(*jsonrpc.Message)) (json.RawMessage, error) {
	b.ids++
	meta := map[string]any{
		mcp.MetaKeyProtocolVersion: mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities: map[string]any{},
		mcp.MetaKeyClientInfo: map[string]string{"name": "yaya-cli", "version": yayaVersion()},
	}
	if onNote != nil {
		meta["progressToken"] = b.ids
	}
	params["_meta"] = meta
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": b.ids, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://yaya"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(mcp.HeaderProtocolVersion, mcp.ProtocolVersion20260728)
	req.Header.Set(mcp.HeaderMethod, method)
	if v, ok := mcp.EncodeHeaderValue(name); ok && name != "" {
		req.Header.Set(mcp.HeaderName, v)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotFound {
		if err := b.otherVersion(ctx); err != nil {
			return nil, err
		}
	}
	if !speaksRPC(resp) {
		return nil, &httpRefusal{refusedBy(resp, path), resp.StatusCode}
	}
	res, err := readAnswer(resp, onNote)
	if err != nil && resp.StatusCode != http.StatusOK {
		err = &httpRefusal{err, resp.StatusCode}
	}
	return res, err
}

func readAnswer(resp *http.Response, onNote func(*jsonrpc.Message)) (json.RawMessage, error) {
	next := func() ([]byte, error) {
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) //nolint:forbidigo // bounded by the reader
		if err == nil && len(data) == 0 {
			err = io.ErrUnexpectedEOF
		}
		return data, err
	}
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt == "text/event-stream" {
		r := sse.NewReader(resp.Body, maxAnswer)
		next = func() ([]byte, error) {
			ev, err := r.Next()
			return ev.Data, err
		}
	}
	for {
		data, err := next()
		if err != nil {
			return nil, fmt.Errorf("the answer broke off: %w", err)
		}
		var msg jsonrpc.Message
		if err := msg.Parse(data); err != nil {
			return nil, fmt.Errorf("yaya answered HTTP %s: %w", resp.Status, err)
		}
		switch {
		case msg.IsNotification():
			if onNote != nil {
				onNote(&msg)
			}
		case msg.Err != nil:
			return nil, jsonrpc.ParseError(msg.Err)
		case msg.IsResponse():
			return msg.Result.Raw(), nil
		}
	}
}

// toolInfo is a tool as it is listed.
type toolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	raw         json.RawMessage
}

func (b *backend) tools(ctx context.Context) ([]toolInfo, error) {
	raw, err := b.rpc(ctx, "tools/list", "", map[string]any{}, nil)
	if err != nil {
		return nil, err
	}
	var res struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, err
	}
	out := make([]toolInfo, len(res.Tools))
	for i, t := range res.Tools {
		if err := json.Unmarshal(t, &out[i]); err != nil {
			return nil, err
		}
		out[i].raw = t
	}
	return out, nil
}

func (b *backend) call(ctx context.Context, name string, args json.RawMessage, progress func(string)) (json.RawMessage, error) {
	return b.rpc(ctx, "tools/call", name, map[string]any{"name": name, "arguments": args}, func(m *jsonrpc.Message) {
		if m.Method != "notifications/progress" {
			return
		}
		text, _ := m.Params.String("message")
		line := "progress " + string(m.Params.Get("progress"))
		if total := m.Params.Get("total"); total != nil {
			line += " of " + string(total)
		}
		if text != "" {
			line += ": " + text
		}
		progress(line)
	})
}
