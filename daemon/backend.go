package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/internal/worded"
)

// Backend is whoever runs the servers: the daemon, through its socket, or this
// process, for the length of one command. Both answer the same requests.
type Backend struct {
	Client *http.Client
	Remote bool // the daemon
	ids    int64
}

// ReachTimeout is how long a daemon may take to say that it is there.
const ReachTimeout = 2 * time.Second

// Reach returns the backend of a running daemon, if there is one.
func Reach(ctx context.Context, p Paths) (*Backend, bool) {
	b := &Backend{Remote: true, Client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", p.Socket())
		},
		MaxIdleConnsPerHost: 64,
	}}}
	ctx, cancel := context.WithTimeout(ctx, ReachTimeout)
	defer cancel()
	if err := b.GetJSON(ctx, "/health", new(struct{})); err != nil {
		b.Client.CloseIdleConnections()
		return nil, false
	}
	return b, true
}

// WithDaemon runs f with the daemon, and reports whether there is one.
func WithDaemon(ctx context.Context, p Paths, f func(*Backend) error) (done bool, err error) {
	b, ok := Reach(ctx, p)
	if !ok {
		return false, nil
	}
	defer b.Client.CloseIdleConnections()
	return true, f(b)
}

// ownBackend returns the backend of this process's own API.
func ownBackend(h http.Handler) *Backend {
	return &Backend{Client: &http.Client{Transport: inProcess{AsOwner(h)}}}
}

// otherVersion returns why a daemon does not know what this yaya asks for, nil if it is
// the same version.
func (b *Backend) otherVersion(ctx context.Context) error {
	var r struct {
		Version string `json:"version"`
	}
	if b.Remote {
		_ = b.GetJSON(ctx, "/status", &r) // who does not say its version is not blamed for it
	}
	if r.Version == "" || r.Version == Version() {
		return nil
	}
	return fmt.Errorf("the running yaya is version %s, and this is yaya %s: restart it (end it, then yaya serve)", Printable(r.Version, 60), Version())
}

// WithBackend runs f with the daemon, unless files are named, else with servers
// of its own, which are stopped when f returns.
func WithBackend(ctx context.Context, g *Flags, mcpConfig []string, f func(*Backend) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if len(mcpConfig) == 0 {
		if done, err := WithDaemon(ctx, p, f); done {
			return err
		}
	}
	// The answer, not a log, says what goes wrong with a server.
	log := zerolog.Nop()
	if g.Verbose {
		log = g.NewLog(os.Stderr)
	}
	return WithoutDaemon(ctx, g, AppOptions{MCPConfig: mcpConfig, Log: log, lenient: true}, func(a *App) error {
		a.bridge.waitSettled(ctx, os.Stderr)
		mux := http.NewServeMux()
		mux.Handle("/mcp", a.MCP)
		mux.Handle("/mcp/{profile}", a.MCP)
		mux.Handle("POST /cli/mcp", a.MCP.CommandLine())
		mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(a.bridge.report("", a.bridge.loaded.Servers)) // into memory
		})
		return f(ownBackend(mux))
	})
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

// MaxAnswer bounds what a command reads of an answer of the admin API, in bytes.
const MaxAnswer = 64 << 20

// GetJSON decodes the answer of a path into v, at most [MaxAnswer] bytes of it.
func (b *Backend) GetJSON(ctx context.Context, path string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://yaya"+path, nil)
	if err != nil {
		return err
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusedBy(resp, path)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, MaxAnswer)).Decode(v)
}

// rpc sends one request of the command line in the modern era and returns its result.
func (b *Backend) rpc(ctx context.Context, method, name string, params map[string]any, onNote func(*jsonrpc.Message)) (json.RawMessage, error) {
	return b.rpcAt(ctx, "/cli/mcp", method, name, params, onNote)
}

// httpRefusal is an error that came with a status of its own.
type httpRefusal struct {
	error
	Status int
}

// Unwrap returns the error.
func (e *httpRefusal) Unwrap() error { return e.error }

// rpcAt sends one request to an endpoint.
func (b *Backend) rpcAt(ctx context.Context, path, method, name string, params map[string]any, onNote func(*jsonrpc.Message)) (json.RawMessage, error) {
	b.ids++
	meta := map[string]any{
		mcp.MetaKeyProtocolVersion: mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities: map[string]any{},
		mcp.MetaKeyClientInfo: map[string]string{"name": "yaya-cli", "version": Version()},
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
	resp, err := b.Client.Do(req)
	if err != nil {
		return nil, unanswered(ctx, method, err)
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
	if broken, ok := errors.AsType[*brokenOffError](err); ok {
		err = unanswered(ctx, method, broken)
	}
	if err != nil && resp.StatusCode != http.StatusOK {
		err = &httpRefusal{err, resp.StatusCode}
	}
	return res, err
}

// brokenOffError means that an answer is incomplete.
type brokenOffError struct{ error }

func (e *brokenOffError) Error() string { return "the answer broke off: " + e.error.Error() }
func (e *brokenOffError) Unwrap() error { return e.error }

// unanswered adds to why a call has no answer that yaya may have made it all the same.
func unanswered(ctx context.Context, method string, err error) error {
	dial, ok := errors.AsType[*net.OpError](err)
	if method != "tools/call" || ctx.Err() != nil || ok && dial.Op == "dial" {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errnos.Reset) {
		return worded.Error(err, "yaya ended before it answered; the call may or may not have taken effect")
	}
	return fmt.Errorf("yaya has not answered: %w; the call may or may not have taken effect", err)
}

func readAnswer(resp *http.Response, onNote func(*jsonrpc.Message)) (json.RawMessage, error) {
	next := func() ([]byte, error) {
		data, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer)) //nolint:forbidigo // bounded by the reader
		if err == nil && len(data) == 0 {
			err = io.ErrUnexpectedEOF
		}
		return data, err
	}
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt == "text/event-stream" {
		r := sse.NewReader(resp.Body, MaxAnswer)
		next = func() ([]byte, error) {
			ev, err := r.Next()
			return ev.Data, err
		}
	}
	for {
		data, err := next()
		if err != nil {
			return nil, &brokenOffError{err}
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

// ToolInfo is a tool as it is listed.
type ToolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Raw         json.RawMessage `json:"-"` // all of it
}

// Tools lists the tools that the command line may call.
func (b *Backend) Tools(ctx context.Context) ([]ToolInfo, error) {
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
	out := make([]ToolInfo, len(res.Tools))
	for i, t := range res.Tools {
		if err := json.Unmarshal(t, &out[i]); err != nil {
			return nil, err
		}
		out[i].Raw = t
	}
	return out, nil
}

// Call calls a tool and returns its result. progress, unless it is nil, is called with what the
// tool says meanwhile.
func (b *Backend) Call(ctx context.Context, name string, args json.RawMessage, progress func(string)) (json.RawMessage, error) {
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
