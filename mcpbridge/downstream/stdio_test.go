package downstream_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// stdioClient is the other end of a server's standard input and output.
type stdioClient struct {
	t      *testing.T
	in     *io.PipeWriter // closed by the test: the server ends then
	out    *io.PipeWriter // closed by the test when the server has ended
	served chan error
	lines  chan string
}

func overStdio(t *testing.T, srv *downstream.Server) *stdioClient {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &stdioClient{t, inW, outW, make(chan error, 1), make(chan string, 100)}
	go func() { c.served <- srv.ServeStdio(t.Context(), tool.LocalOwner, inR, outW, "") }()
	go func() {
		s := bufio.NewScanner(outR)
		for s.Scan() {
			c.lines <- s.Text()
		}
		close(c.lines)
	}()
	return c
}

func (c *stdioClient) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *stdioClient) expect(want string) {
	c.t.Helper()
	if got := next(c.t, c.lines); !strings.Contains(got, want) {
		c.t.Errorf("got %s, want %s", got, want)
	}
}

// The same over standard streams, both eras on one connection.
func TestStdio(t *testing.T) {
	started := make(chan struct{}, 1)
	r := newRig(t,
		relay("srv__echo", func(_ context.Context, c tool.Call) (tool.Result, error) {
			return ok(`{"content":[],"args":` + string(c.Args) + `}`)
		}),
		relay("srv__hang", func(ctx context.Context, c tool.Call) (tool.Result, error) {
			started <- struct{}{}
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}))
	c := overStdio(t, r.srv)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	c.expect("send initialize first")
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
	c.expect(`"resultType":"complete"`)
	c.say(initialize)
	c.expect(`"protocolVersion":"2025-06-18"`)
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"srv__echo","arguments":{"n":12345678901234567890}}}`)
	c.expect(`"args":{"n":12345678901234567890}`)
	c.say(`nonsense`)
	c.expect(`-32700`)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"srv__hang"}}`)
	<-started
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	c.say(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	c.expect(`"id":4,"result":{}`) // and nothing for 3
	r.changed()
	c.expect(`notifications/tools/list_changed`)
	c.say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"srv__hang"}}`)
	<-started
	_ = c.in.Close()
	if err := <-c.served; err != nil {
		t.Errorf("ServeStdio = %v at the end of its input, want no error", err)
	}
	_ = c.out.Close()
	if len(r.ended) != 1 {
		t.Errorf("ended: %v", r.ended)
	}
	for range c.lines {
	}
}

// A response larger than any buffer arrives whole, and small requests after it
// are not mixed up with it.
func TestBuffersAreNotMixed(t *testing.T) {
	r := newRig(t, relay("srv__echo", func(_ context.Context, c tool.Call) (tool.Result, error) {
		return ok(`{"content":[],"args":` + string(c.Args) + `}`)
	}))
	s := r.session()
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			for _, size := range []int{1, 1 << 20, 3} {
				arg := fmt.Sprintf(`{"v":"%s"}`, strings.Repeat(fmt.Sprint(n%10), size))
				a := r.send("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d-%d","method":"tools/call","params":{"name":"srv__echo","arguments":%s}}`, n, size, arg), s)
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d-%d","result":{"content":[],"args":%s}}`, n, size, arg); a.body != want {
					t.Errorf("call %d of %d bytes came back wrong (%d bytes)", n, size, len(a.body))
				}
			}
		})
	}
	wg.Wait()
}

func FuzzServer(f *testing.F) {
	f.Add([]byte(initialize))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__t",` + modernMeta + `}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`))
	reg := new(tool.Registry)
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) { return ok(`{"content":[]}`) })}})
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner})
	f.Cleanup(srv.Close)
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n") {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var out bytes.Buffer
		in := initialize + "\n" + string(line) + "\n"
		if err := srv.ServeStdio(ctx, tool.LocalOwner, strings.NewReader(in), &out, ""); err != nil {
			t.Fatal(err)
		}
		for l := range bytes.SplitSeq(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			var m jsonrpc.Message
			if err := m.Parse(l); err != nil && !bytes.Contains(l, []byte(`"id":null`)) {
				t.Fatalf("wrote %q: %v", l, err)
			}
		}
	})
}

// A server says nothing unasked before its client's notifications/initialized: a change
// of tools waits for it, and changes that say the same wait as one.
func TestNothingBeforeInitialized(t *testing.T) {
	const changed = "notifications/tools/list_changed"
	t.Run("stdio", func(t *testing.T) {
		starting := make(chan struct{})
		going := make(chan struct{})
		var changes func()
		reg := new(tool.Registry)
		srv := downstream.New(downstream.Config{
			Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg,
			Settle: func(context.Context) {
				close(starting)
				<-going
			},
			Watch: func(f func([]string)) func() {
				changes = func() { f([]string{"srv"}) }
				return func() {}
			},
		})
		defer srv.Close()
		c := overStdio(t, srv)
		c.say(initialize)
		<-starting // the version is settled, and servers start
		changes()
		close(going)
		c.expect(`"id":0,"result"`)
		changes()
		changes()
		c.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		c.expect(`"id":1,"result":{}`)
		c.say(initialized)
		c.expect(changed)
		c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		c.expect(`"id":2,"result":{}`) // the three were one
		_ = c.in.Close()
		if err := <-c.served; err != nil {
			t.Errorf("ServeStdio = %v at the end of its input, want no error", err)
		}
		_ = c.out.Close()
		for l := range c.lines {
			t.Errorf("also wrote %s", l)
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		r := newRig(t)
		a := r.send("POST", initialize, nil)
		s := map[string]string{"Mcp-Session-Id": a.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-06-18"}
		events, stop := r.stream("GET", "", s)
		defer stop()
		for range 3 {
			r.changed()
		}
		if a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, s); a.status != 200 {
			t.Errorf("ping: %+v", a)
		}
		select {
		case got := <-events:
			t.Errorf("got %s before initialized", got)
		default:
		}
		r.send("POST", initialized, s)
		if got := next(t, events); !strings.Contains(got, changed) {
			t.Errorf("got %s, want %s", got, changed)
		}
		stop()
		for got := range events {
			t.Errorf("also sent %s", got)
		}
	})
}
