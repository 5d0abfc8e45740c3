package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/racing"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// echoEnv makes the test binary a stdio server that returns what it gets.
const echoEnv = "YAYA_TEST_ECHO"

// numbered returns the value of the first member of that name, if it is a number.
func numbered(msg []byte, name string) []byte {
	_, rest, ok := bytes.Cut(msg, []byte(`"`+name+`":`))
	if !ok {
		return nil
	}
	return rest[:bytes.IndexAny(rest, ",}")]
}

// echoed appends the answer of a server with a tool that returns its argument. It allocates
// nothing for a call, so that a benchmark counts what yaya allocates.
func echoed(dst, msg []byte) []byte {
	id := numbered(msg, "id")
	if id == nil {
		return dst
	}
	dst = append(append(append(dst, `{"jsonrpc":"2.0","id":`...), id...), ',')
	_, text, called := bytes.Cut(msg, []byte(`"text":`))
	switch {
	case called:
		dst = append(dst, `"result":{"content":[{"type":"text","text":`...)
		dst = append(dst, text[:bytes.IndexByte(text[1:], '"')+2]...)
		return append(dst, `}]}}`...)
	case bytes.Contains(msg, []byte(`"initialize"`)):
		return append(dst, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}`...)
	case bytes.Contains(msg, []byte(`"tools/list"`)):
		return append(dst, `"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}`...)
	}
	return append(dst, `"error":{"code":-32601,"message":"no"}}`...)
}

// echoStdio serves until its input ends.
func echoStdio() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var out []byte
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if out = echoed(out[:0], line); len(out) > 0 {
			out = append(out, '\n')
			if _, err := os.Stdout.Write(out); err != nil {
				return
			}
		}
	}
}

// echoHTTP serves a connection until it ends.
func echoHTTP(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 1<<20)
	var body, out, head []byte
	for {
		size := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				for _, c := range v[:len(v)-2] {
					size = 10*size + int(c-'0')
				}
			}
		}
		if cap(body) < size {
			body = make([]byte, size)
		}
		if _, err := io.ReadFull(in, body[:size]); err != nil {
			return
		}
		head = append(head[:0], "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"...)
		if out = echoed(out[:0], body[:size]); len(out) > 0 {
			head = append(head[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
			head = append(strconv.AppendInt(head, int64(len(out)), 10), "\r\n\r\n"...)
		}
		head = append(head, out...)
		if _, err := c.Write(head); err != nil {
			return
		}
	}
}

// relayed is a downstream server before an upstream server.
func relayed(tb testing.TB, kind servers.Transport) *downstream.Server {
	tb.Helper()
	srv := servers.Server{Name: "srv", Transport: kind, Era: servers.EraLegacy}
	if kind == servers.Stdio {
		self, err := os.Executable()
		if err != nil {
			tb.Fatal(err)
		}
		srv.Command, srv.Env = self, map[string]string{echoEnv: "1"}
	} else {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go echoHTTP(c) // it ends with the connection, which the transport closes
			}
		}()
		tb.Cleanup(func() {
			_ = l.Close()
			<-ended
		})
		srv.URL = "http://" + l.Addr().String() + "/mcp"
	}
	reg, procs, rt := new(tool.Registry), new(proc.Manager), upstream.NewTransport()
	disp := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})
	host := feature.NewHost(feature.Config{Registry: reg, Dispatcher: disp})
	down := downstream.New(downstream.Config{Dispatcher: disp, Registry: reg, Caller: func(*http.Request) (tool.Caller, bool) { return tool.LocalOwner, true }})
	tb.Cleanup(func() {
		down.Close()
		if err := host.Close(context.Background()); err != nil {
			tb.Errorf("Close of the host = %v, want no error", err)
		}
		procs.Close(context.Background())
		rt.CloseIdleConnections()
	})
	p := upstream.New(upstream.Config{Server: srv, Environ: func() []string { return srv.Environ(os.LookupEnv) }, Procs: procs, HTTP: rt, Name: "yaya", Version: "test"})
	if err := host.Install(tb.Context(), feature.Contribution{Name: "t", Providers: []feature.Provider{p}}); err != nil {
		tb.Fatal(err)
	}
	if err := host.WaitReady(tb.Context(), "srv"); err != nil {
		tb.Fatal(err)
	}
	return down
}

// caller makes calls as an HTTP server does that allocates nothing itself.
type caller struct {
	down *downstream.Server
	req  *http.Request
	body bytes.Reader
	text []byte

	header http.Header
	status int
	got    bytes.Buffer
}

func (c *caller) Header() http.Header         { return c.header }
func (c *caller) WriteHeader(status int)      { c.status = status }
func (c *caller) Write(b []byte) (int, error) { return c.got.Write(b) }

// SetWriteDeadline is for [http.ResponseController].
func (c *caller) SetWriteDeadline(time.Time) error { return nil }

// newModernCaller returns a caller of the modern era, whose calls say what its client is.
func newModernCaller(tb testing.TB, down *downstream.Server, size int) *caller {
	tb.Helper()
	c := newCaller(tb, down, size)
	c.req.Header = http.Header{
		"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method": {"tools/call"}, "Mcp-Name": {"srv__echo"},
	}
	c.text = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"srv__echo","arguments":{"text":"%s"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, strings.Repeat("x", size))
	return c
}

func newCaller(tb testing.TB, down *downstream.Server, size int) *caller {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context()) // as that of net/http
	tb.Cleanup(cancel)
	c := &caller{down: down, header: http.Header{}}
	c.req = (&http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(&c.body)}).WithContext(ctx)
	c.text = []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err := c.call(); err != nil {
		tb.Fatal(err)
	}
	c.req.Header.Set("Mcp-Session-Id", c.header.Get("Mcp-Session-Id"))
	c.text = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"srv__echo","arguments":{"text":"%s"}}}`, strings.Repeat("x", size))
	return c
}

func (c *caller) call() error {
	clear(c.header)
	c.got.Reset()
	c.body.Reset(c.text)
	c.req.ContentLength = int64(len(c.text))
	c.status = 0
	c.down.ServeHTTP(c, c.req)
	if c.status != http.StatusOK || !bytes.Contains(c.got.Bytes(), []byte(`"result"`)) {
		return fmt.Errorf("got %d %.200s", c.status, c.got.Bytes())
	}
	return nil
}

// A relayed call, from the body of its request to its response: the HTTP server before it is
// not in the figures, nor is the upstream server.
func BenchmarkRelayed(b *testing.B) {
	for _, kind := range []servers.Transport{servers.HTTP, servers.Stdio} {
		for _, size := range []int{64, 4 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%s/%d", kind, size), func(b *testing.B) {
				c := newCaller(b, relayed(b, kind), size)
				b.ReportAllocs()
				for b.Loop() {
					if err := c.call(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("%s/modern/64", kind), func(b *testing.B) {
			c := newModernCaller(b, relayed(b, kind), 64)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The path of a call allocates next to nothing: a call over HTTP has its request, that to the
// server, the two answers and their names.
func TestRelayedCallsAllocateLittle(t *testing.T) {
	if racing.Enabled {
		t.Skip("the race detector drops what is pooled")
	}
	for _, row := range []struct {
		kind         servers.Transport
		most, modern float64 // calls of a legacy client, and of one that describes itself with each
	}{{servers.HTTP, 12, 21}, {servers.Stdio, 9, 18}} {
		for most, c := range map[float64]*caller{
			row.most:   newCaller(t, relayed(t, row.kind), 64),
			row.modern: newModernCaller(t, relayed(t, row.kind), 64),
		} {
			var failed error
			got := testing.AllocsPerRun(500, func() {
				if err := c.call(); err != nil {
					failed = err
				}
			})
			if failed != nil || got > most {
				t.Errorf("%s: a call allocates %v times, %v; want at most %v", row.kind, got, failed, most)
			}
		}
	}
}
