package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

func recorder(t testing.TB) (*traffic.Log, *os.Root) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secrets := new(masked.Secrets)
	secrets.Learn("a secret of a server", "another secret of it")
	l := traffic.New(traffic.Config{Root: root, Mask: secrets.Append, Margin: masked.Longest, Settings: func() traffic.Settings {
		return traffic.Settings{Days: 7, MaxBytes: 64 << 20, Bodies: traffic.BodiesAll}
	}})
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("Close of the traffic log = %v, want no error", err)
		}
		root.Close()
	})
	return l, root
}

// USE-3: every call of an MCP client is in the record of calls, with who called what,
// what it came to, and what was sent and answered.
func TestCallsAreRecorded(t *testing.T) {
	log, root := recorder(t)
	reg := new(tool.Registry)
	provided := func(name string, run func(context.Context, tool.Call) (tool.Result, error)) tool.Provided {
		b := relay("srv__"+name, run)
		b.def.Identity.Tool = name
		return tool.Provided{Tool: b}
	}
	errs := reg.Replace("srv", []tool.Provided{
		provided("echo", func(_ context.Context, c tool.Call) (tool.Result, error) {
			return ok(`{"content":[{"type":"text","text":"hi"}]}`)
		}),
		provided("fails", func(context.Context, tool.Call) (tool.Result, error) {
			res, err := ok(`{"content":[],"isError":true}`)
			res.OK, res.ErrorKind, res.Brief = false, tool.ErrTool, "it went wrong"
			return res, err
		}),
		provided("says", func(context.Context, tool.Call) (tool.Result, error) {
			return ok(`{"content":[{"type":"text","text":"in its own words"}],"isError":true}`)
		}),
		provided("errs", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Native: &tool.NativeResult{Error: []byte(`{"code":-32000,"message":"no such file"}`)}}, nil
		}),
		provided("broken", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("the pipe is gone")
		}),
	})
	if errs != nil {
		t.Fatal(errs)
	}
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner, Traffic: log})
	hs := httptest.NewServer(srv)
	t.Cleanup(func() { srv.Close(); hs.Close() })
	r := &rig{t: t, reg: reg, srv: srv, url: hs.URL}
	session := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"inspector","version":"0.9"}}}`, nil).header.Get("Mcp-Session-Id")
	id := 1
	request := func(method, params string) {
		id++
		r.send("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), map[string]string{"Mcp-Session-Id": session})
	}
	request("tools/call", `{"name":"srv__echo","arguments":{"message":"hi"},"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`)
	request("tools/call", `{"name":"srv__fails"}`)
	request("tools/call", `{"name":"srv__says"}`)
	request("tools/call", `{"name":"srv__errs","arguments":{}}`)
	request("tools/call", `{"name":"srv__broken","arguments":{}}`)
	request("tools/call", `{"name":"srv__nothing","arguments":{"a":1}}`)
	request("tools/call", `{"name":"srv__echo","arguments":[]}`)
	request("resources/read", `{"uri":"file:///none"}`)
	request("prompts/get", `{"name":"none"}`)
	request("tools/list", `{}`)
	want := []traffic.Record{
		{Method: "tools/call", Server: "srv", Tool: "echo", Name: "srv__echo", Outcome: "ok", Arguments: `{"message":"hi"}`, Result: `{"content":[{"type":"text","text":"hi"}]}`, Trace: "0af7651916cd43dd8448eb211c80319c"},
		{Method: "tools/call", Server: "srv", Tool: "fails", Name: "srv__fails", Outcome: "tool", Error: "it went wrong", Result: `{"content":[],"isError":true}`},
		{Method: "tools/call", Server: "srv", Tool: "says", Name: "srv__says", Outcome: "tool", Error: "in its own words", Result: `{"content":[{"type":"text","text":"in its own words"}],"isError":true}`},
		{Method: "tools/call", Server: "srv", Tool: "errs", Name: "srv__errs", Outcome: "tool", Error: "no such file", Arguments: `{}`, Result: `{"code":-32000,"message":"no such file"}`},
		{Method: "tools/call", Server: "srv", Tool: "broken", Name: "srv__broken", Outcome: "internal", Error: "srv__broken failed: the pipe is gone", Arguments: `{}`},
		{Method: "tools/call", Tool: "srv__nothing", Outcome: "not_found", Arguments: `{"a":1}`, Result: `{"content":[{"type":"text","text":"unknown tool \"srv__nothing\""}],"isError":true}`},
		{Method: "tools/call", Tool: "srv__echo", Outcome: "validation", Error: "arguments must be an object", Arguments: `[]`},
		{Method: "resources/read", Tool: "file:///none", Outcome: "not_found", Error: "resource not found: file:///none"},
		{Method: "prompts/get", Tool: "none", Outcome: "not_found", Error: `unknown prompt "none"`},
	}
	got := records(t, log, root, len(want))
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d: %+v", len(got), len(want), got)
	}
	for i, g := range got {
		if g.Origin != "mcp" || g.Client != "inspector" || g.ClientVersion != "0.9" || g.Principal != "owner" || !strings.HasPrefix(g.Session, "mcp_") || g.Time.IsZero() {
			t.Errorf("the call of %s is of %+v", g.Tool, g)
		}
		w := want[i]
		w.ID, w.Time, w.TookMS, w.Origin, w.Client, w.ClientVersion, w.Principal, w.Session = g.ID, g.Time, g.TookMS, g.Origin, g.Client, g.ClientVersion, g.Principal, g.Session
		w.ArgumentsBytes, w.ResultBytes = g.ArgumentsBytes, g.ResultBytes
		if w.Tool == "broken" {
			w.Result = g.Result // in yaya's words
		}
		if g != w {
			t.Errorf("got  %+v\nwant %+v", g, w)
		}
	}
}

func records(t *testing.T, l *traffic.Log, root *os.Root, n int) []traffic.Record {
	t.Helper()
	for {
		news := l.News()
		got, _, err := traffic.Read(t.Context(), root, traffic.Filter{Bodies: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) >= n {
			return got
		}
		select {
		case <-news:
		case <-t.Context().Done():
			t.Fatal("nothing was recorded")
		}
	}
}

// A modern client says with each request who it is, and a result larger than what is
// kept counts in full.
func TestModernCallIsRecorded(t *testing.T) {
	log, root := recorder(t)
	reg := new(tool.Registry)
	large := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}]}`
	if errs := reg.Replace("srv", []tool.Provided{{Tool: relay("srv__large", func(context.Context, tool.Call) (tool.Result, error) { return ok(large) })}}); errs != nil {
		t.Fatal(errs)
	}
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner, Traffic: log})
	hs := httptest.NewServer(srv)
	t.Cleanup(func() { srv.Close(); hs.Close() })
	r := &rig{t: t, reg: reg, srv: srv, url: hs.URL}
	got := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__large","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"2"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "srv__large"})
	if !strings.Contains(got.body, large[1:100]) {
		t.Fatalf("got %d %.300s, want %v in it", got.status, got.body, large[1:100])
	}
	rec := records(t, log, root, 1)[0]
	if rec.Client != "modern" || rec.ClientVersion != "2" || rec.ResultBytes < int64(len(large)) || len(rec.Result) != traffic.MaxBody || !rec.Cut {
		t.Errorf("the record has %d bytes of %d, cut %v, of %q %q", len(rec.Result), rec.ResultBytes, rec.Cut, rec.Client, rec.ClientVersion)
	}
}

// The record costs the path of a call next to nothing: compare both.
func BenchmarkCall(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(map[bool]string{false: "unrecorded", true: "recorded"}[with], func(b *testing.B) {
			var log *traffic.Log
			if with {
				log, _ = recorder(b)
			}
			reg := new(tool.Registry)
			raw, err := jsonrpc.ParseObject([]byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 300) + `"}]}`))
			if err != nil {
				b.Fatal(err)
			}
			if errs := reg.Replace("srv", []tool.Provided{{Tool: relay("srv__echo", func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{OK: true, Native: &tool.NativeResult{Result: raw}}, nil
			})}}); errs != nil {
				b.Fatal(errs)
			}
			srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner, Traffic: log})
			defer srv.Close()
			session := ""
			post := func(body string) *httptest.ResponseRecorder {
				req := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				if session != "" {
					req.Header.Set("Mcp-Session-Id", session)
				}
				w := httptest.NewRecorder()
				srv.ServeHTTP(w, req)
				return w
			}
			session = post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`).Header().Get("Mcp-Session-Id")
			b.ReportAllocs()
			before, start := hosttest.ProcessorTime(b), time.Now()
			for i := 0; b.Loop(); i++ {
				if w := post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"srv__echo","arguments":{"message":"hello"}}}`); w.Code != 200 {
					b.Fatalf("got %v, want Code 200", w.Body)
				}
				if i%20 == 0 { // 20,000 calls a second
					time.Sleep(time.Duration(i)*50*time.Microsecond - time.Since(start))
				}
			}
			b.ReportMetric(float64(hosttest.ProcessorTime(b)-before)/float64(b.N), "cpu-ns/op") // with what happens beside the path
		})
	}
}
