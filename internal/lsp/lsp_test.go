package lsp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/lsp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a language server that a test speaks for.
type fake struct {
	t    *testing.T
	r    *textproto.Reader
	in   io.ReadCloser
	out  io.WriteCloser
	said chan map[string]any // what the client sends
}

func none(string) (string, bool) { return "", false }

// pair returns a fake and the pipes of its client.
func pair(t *testing.T) (*fake, io.Reader, io.Writer) {
	t.Helper()
	in, theirs := io.Pipe()
	ours, out := io.Pipe()
	f := &fake{t, textproto.NewReader(bufio.NewReader(in)), in, out, make(chan map[string]any, 100)}
	go func() {
		defer close(f.said)
		for {
			h, err := f.r.ReadMIMEHeader()
			if err != nil {
				return
			}
			size, _ := strconv.Atoi(http.Header(h).Get("Content-Length"))
			data := make([]byte, size)
			if _, err := io.ReadFull(f.r.R, data); err != nil {
				return
			}
			var m map[string]any
			if json.Unmarshal(data, &m) == nil {
				f.said <- m
			}
		}
	}()
	return f, ours, theirs
}

// say sends a message, or other text as it is.
func (f *fake) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, "{") {
		text = fmt.Sprintf("Content-Length: %d\r\nContent-Type: x\r\n\r\n%s", len(text), text)
	}
	_, _ = io.WriteString(f.out, text) // a client that has closed the pipe takes nothing
}

func (f *fake) gone() {
	_ = f.out.Close()
	_ = f.in.Close()
}

// next returns the next message with a method, or the next answer.
func (f *fake) next(method string) map[string]any {
	f.t.Helper()
	for m := range f.said {
		if got, _ := m["method"].(string); got == method {
			return m
		}
	}
	f.t.Fatalf("the client sent no %q", method)
	return nil
}

// started returns a server of /w, and its other side.
func started(t *testing.T, capabilities string) (*lsp.Server, *fake) {
	t.Helper()
	f, r, w := pair(t)
	go func() {
		m := f.next("initialize")
		f.say(`{"jsonrpc":"2.0","id":%v,"result":{"capabilities":%s}}`, m["id"], capabilities)
	}()
	s := lsp.New("/w", r, w)
	if err := s.Initialize(t.Context(), map[string]any{"x": 1}); err != nil {
		t.Fatal(err)
	}
	return s, f
}

func publish(f *fake, uri, version, findings string) {
	f.say(`{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":%q%s,"diagnostics":[%s]}}`, uri, version, findings)
}

func at(line, column int, more string) string {
	return fmt.Sprintf(`{"range":{"start":{"line":%d,"character":%d},"end":{"line":0,"character":0}},"message":"wrong"%s}`, line, column, more)
}

func shown(all []lsp.Finding) string {
	var out []string
	for _, f := range all {
		out = append(out, fmt.Sprintf("%s:%d:%d %d %s %s", f.Path, f.Line, f.Column, f.Severity, f.From, f.Message))
	}
	return strings.Join(out, "\n")
}

// Findings of the asked version are waited for, and of what the server works on; those of other files of the
// folder come last, and those of other places not at all. Columns count characters.
func TestFindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		defer f.gone()
		begun := time.Now()
		go func() {
			f.next("textDocument/didSave")
			f.say(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":7,"value":{"kind":"begin"}}}`)
			publish(f, "file:///w/d%20d/a.ts", `,"version":0`, at(0, 0, ""))
			time.Sleep(10 * time.Second)
			publish(f, "file:///w/b.ts", "", at(5, 2, `,"severity":2,"source":"lint","code":"x1"`))
			publish(f, "file:///etc/passwd", "", at(0, 0, ""))
			publish(f, "https://h/w/c.ts", "", at(0, 0, ""))
			publish(f, "file:///w/../x", "", at(0, 0, ""))
			publish(f, "file:///w/d d/a.ts", `,"version":1`, at(0, 4, `,"code":2322,"source":"ts","severity":9`)+","+at(-1, 99999999, ""))
			time.Sleep(5 * time.Second)
			f.say(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":7,"value":{"kind":"end"}}}`)
		}()
		all, whole, err := s.Check(t.Context(), []lsp.File{{Path: "d d/a.ts", Language: "typescript", Text: "'é𝄞'x"}}, none)
		if err != nil || !whole {
			t.Fatalf("Check = %v, %v", whole, err)
		}
		want := "d d/a.ts:1:4 1 ts 2322 wrong\nd d/a.ts:1:6 1  wrong\nb.ts:6:3 2 lint x1 wrong"
		if got := shown(all); got != want {
			t.Errorf("the findings are\n%s\nwant\n%s", got, want)
		}
		if got := time.Since(begun); got != 16*time.Second {
			t.Errorf("it took %v, want the 15 s of the work and one of silence", got)
		}
		go func() {
			m := f.next("textDocument/didChange")
			p, _ := m["params"].(map[string]any)
			doc, _ := p["textDocument"].(map[string]any)
			if doc["version"] != 2.0 {
				t.Errorf("the change has version %v, want 2", doc["version"])
			}
			publish(f, "file:///w/d%20d/a.ts", "", "")
		}()
		if all, whole, err := s.Check(t.Context(), []lsp.File{{Path: "d d/a.ts", Language: "typescript", Text: "x"}}, none); err != nil || !whole || shown(all) != "b.ts:6:3 2 lint x1 wrong" {
			t.Errorf("the second Check = %q, %v, %v; want that the file is clean", shown(all), whole, err)
		}
	})
}

// A server that can be asked is asked.
func TestPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{"positionEncoding":"utf-8","diagnosticProvider":{"interFileDependencies":true}}`)
		defer f.gone()
		go func() {
			m := f.next("textDocument/diagnostic")
			f.say(`{"jsonrpc":"2.0","id":%v,"result":{"kind":"full","items":[%s]}}`, m["id"], at(0, 7, ""))
		}()
		all, whole, err := s.Check(t.Context(), []lsp.File{{Path: "a.py", Language: "python", Text: "'é𝄞'x"}}, none)
		if err != nil || !whole || shown(all) != "a.py:1:4 1  wrong" {
			t.Errorf("Check = %q, %v, %v", shown(all), whole, err)
		}
	})
}

// Requests of a server are answered, so that it goes on, and change nothing.
func TestRequestsOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := started(t, `{}`)
		defer f.gone()
		for _, c := range [][2]string{
			{"workspace/configuration", `[null,null]`}, {"client/registerCapability", "<nil>"}, {"workspace/applyEdit", `"applied":false`}, {"evil/run", "-32601"},
		} {
			f.say(`{"jsonrpc":"2.0","id":"x","method":%q,"params":{"items":[{},{}]}}`, c[0])
			m := f.next("")
			got, _ := json.Marshal(m["result"])
			if e, _ := json.Marshal(m["error"]); m["error"] != nil {
				got = e
			}
			if want := strings.ReplaceAll(c[1], "<nil>", "null"); m["id"] != "x" || !strings.Contains(string(got), want) {
				t.Errorf("%s was answered %s (id %v), want %s", c[0], got, m["id"], want)
			}
		}
	})
}

// A server that goes, or writes what is not the protocol, ends a check with the reason; one that is silent
// leaves it to the caller's time.
func TestBadServers(t *testing.T) {
	for name, c := range map[string]struct {
		does func(f *fake)
		want string
	}{
		"goes":                {func(f *fake) { f.gone() }, "has ended"},
		"no headers":          {func(f *fake) { f.say("no licence\n") }, "does not write the headers of the protocol: \"no licence"},
		"endless header":      {func(f *fake) { f.say("%s", strings.Repeat("x", 100_000)) }, "does not write the headers"},
		"many headers":        {func(f *fake) { f.say("%s", strings.Repeat("A: b\r\n", 100)) }, "does not write the headers"},
		"huge message":        {func(f *fake) { f.say("Content-Length: 99999999999999999999\r\n\r\n") }, "4194304 are the most"},
		"negative length":     {func(f *fake) { f.say("Content-Length: -1\r\n\r\n") }, "are the most"},
		"not JSON":            {func(f *fake) { f.say("Content-Length: 2\r\n\r\nxx") }, "not JSON-RPC"},
		"a message that ends": {func(f *fake) { f.say("Content-Length: 20\r\n\r\nxx"); f.gone() }, "ends too early"},
		"silence":             {func(*fake) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := started(t, `{}`)
				defer f.gone()
				go func() {
					f.next("textDocument/didSave")
					c.does(f)
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, whole, err := s.Check(ctx, []lsp.File{{Path: "a.ts", Text: "x"}}, none)
				if whole || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("Check = %v, %v; want %q", whole, err, c.want)
				}
				_ = f.out.Close()
				<-s.Done()
			})
		})
	}
}

// A server that floods fills no memory.
func TestFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		defer f.gone()
		many := strings.TrimSuffix(strings.Repeat(at(0, 0, `,"source":"`+strings.Repeat("s", 1000)+`"`)+",", 1000), ",")
		go func() {
			f.next("textDocument/didSave")
			publish(f, "file:///w/a.ts", "", many)
			for n := range 600 {
				publish(f, fmt.Sprintf("file:///w/%d.ts", n), "", at(0, 0, ""))
			}
		}()
		all, whole, err := s.Check(t.Context(), []lsp.File{{Path: "a.ts", Text: "x"}}, none)
		if err != nil || !whole || len(all) != 200+499 || len(all[0].From) > 50 {
			t.Errorf("Check = %d findings, %v, %v; want 200 of the file and 499 of others", len(all), whole, err)
		}
		if !slices.IsSortedFunc(all[200:], func(a, b lsp.Finding) int { return strings.Compare(a.Path, b.Path) }) {
			t.Error("the other files are not in order")
		}
	})
}

// Nor does one that floods about many files, in the folder and elsewhere. The asked file has its findings all
// the same.
func TestFloodsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		defer f.gone()
		many := strings.TrimSuffix(strings.Repeat(at(0, 0, `,"source":"`+strings.Repeat("s", 40)+`"`)+",", 200), ",")
		go func() {
			f.next("textDocument/didSave")
			for n := range 600 {
				publish(f, fmt.Sprintf("file:///usr/lib/%d.ts", n), "", many)
			}
			for n := range 300 {
				publish(f, fmt.Sprintf("file:///w/%d.ts", n), "", many)
			}
			publish(f, "file:///w/3.ts", "", many) // again
			publish(f, "file:///w/a.ts", "", many)
		}()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		all, whole, err := s.Check(t.Context(), []lsp.File{{Path: "a.ts", Text: "x"}}, none)
		n := 0
		for _, f := range all {
			if f.Path == "a.ts" {
				n++
			}
		}
		if err != nil || !whole || n != 200 || len(all) != 200+2000 {
			t.Errorf("Check = %d findings, of which %d are of the file, %v, %v; want 200 of the file and 2000 of others", len(all), n, whole, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 4<<20 { //nolint:gosec // bytes fit
			t.Errorf("%d bytes are kept, want at most 4 MiB", kept)
		}
	})
}

// Close asks the server to end.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := started(t, `{}`)
		go func() {
			m := f.next("shutdown")
			f.say(`{"jsonrpc":"2.0","id":%v,"result":null}`, m["id"])
			f.next("exit")
			f.gone()
		}()
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		<-s.Done()
		if err := s.Close(t.Context()); err == nil {
			t.Error("Close of a server that has ended = nil, want an error")
		}
	})
}
