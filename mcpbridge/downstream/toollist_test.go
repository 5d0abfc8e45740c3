package downstream_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// manyTools returns n tools whose definitions have about 600 bytes, most of them words in an order
// that compresses like prose, not like a repetition.
func manyTools(n int) []tool.Tool {
	words := strings.Fields("reads writes the a of entry file folder path issue list user search query result limit page created updated status open closed branch commit message with in returns optional default maximum number repository project channel document table row column index schema value name identifier")
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in each run
	out := make([]tool.Tool, n)
	for i := range out {
		text := make([]string, 70)
		for w := range text {
			text[w] = words[rnd.IntN(len(words))]
		}
		b := relay(fmt.Sprintf("srv__tool_%d", i), func(context.Context, tool.Call) (tool.Result, error) { return ok(`{"content":[]}`) })
		b.def.Native = fmt.Appendf(nil, `{"name":"own","description":%q,"inputSchema":{"type":"object","properties":{"path":{"type":"string","description":%q},"limit":{"type":"integer"}}}}`, strings.Join(text[10:], " "), strings.Join(text[:10], " "))
		out[i] = b
	}
	return out
}

// A client of another machine, as a proxy on this one announces it.
const proxied = "X-Forwarded-For"

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// unpacked returns a response's body, decompressed if it is compressed.
func unpacked(t *testing.T, a answer) (body string, compressed bool) {
	t.Helper()
	if a.header.Get("Content-Encoding") == "" {
		return a.body, false
	}
	in := strings.NewReader(a.body)
	zr, err := gzip.NewReader(in)
	if err != nil {
		t.Fatalf("gzip.NewReader = %v, want no error", err)
	}
	zr.Multistream(false)       // httpx reads a single member
	data, err := io.ReadAll(zr) //nolint:forbidigo // test
	if err != nil || in.Len() != 0 {
		t.Fatalf("decompress the list: got error %v and %d bytes behind the first member, want neither", err, in.Len())
	}
	return string(data), true
}

// A large list is compressed for clients of other machines that accept gzip, and has the same
// bytes for all, in each era and profile. Another list replaces it.
func TestToolListIsCompressed(t *testing.T) {
	r := newRig(t, manyTools(2000)...)
	mux := http.NewServeMux()
	mux.Handle("/", r.srv)
	mux.Handle("/mcp/{profile}", r.srv)
	hs := httptest.NewServer(mux)
	defer hs.Close()
	r.url = hs.URL
	base, legacy := r.url, r.session()
	clients := []struct {
		name, path, body string
		header           map[string]string
		large            bool
	}{
		{"legacy", "", `{"jsonrpc":"2.0","id":"ID","method":"tools/list"}`, legacy, true},
		{"modern", "", `{"jsonrpc":"2.0","id":"ID","method":"tools/list","params":{` + modernMeta + `}}`, modern("tools/list", ""), true},
		{"modern, search", "/mcp/search", `{"jsonrpc":"2.0","id":"ID","method":"tools/list","params":{` + modernMeta + `}}`, modern("tools/list", ""), false},
	}
	for _, c := range clients {
		for _, id := range []string{"1", strings.Repeat("long id ", 100), strings.Repeat("x", 70_000)} {
			for _, e := range []struct {
				encoding, via string
				want          bool
			}{
				{"identity", "192.0.2.1", false}, {"gzip;q=0", "192.0.2.1", false}, {"*;q=1, gzip;q=0", "192.0.2.1", false}, {"br", "192.0.2.1", false},
				{"gzip", "192.0.2.1", true}, {"gzip, deflate, br", "192.0.2.1", true}, {"deflate, GZIP ; q=0.5", "192.0.2.1", true}, {"*", "192.0.2.1", true},
				{"gzip", "", false},
			} {
				h := map[string]string{"Accept-Encoding": e.encoding}
				if e.via != "" {
					h[proxied] = e.via
				}
				for k, v := range c.header {
					h[k] = v
				}
				r.url = base + c.path
				body := strings.Replace(c.body, "ID", id, 1)
				h["Accept-Encoding"] = "identity"
				plain := r.send("POST", body, h)
				h["Accept-Encoding"] = e.encoding
				a := r.send("POST", body, h)
				got, compressed := unpacked(t, a)
				if want := e.want && c.large && len(id) < 65_000; compressed != want {
					t.Errorf("%s, id of %d bytes, Accept-Encoding %q, proxied %q: compressed = %v, want %v", c.name, len(id), e.encoding, e.via, compressed, want)
				}
				if a.status != 200 || got != plain.body || !json.Valid([]byte(got)) {
					t.Errorf("%s, id of %d bytes, Accept-Encoding %q: got status %d and %d bytes, want the %d bytes of the plain list", c.name, len(id), e.encoding, a.status, len(got), len(plain.body))
				}
				if vary := a.header.Get("Vary"); (vary == "Accept-Encoding") != c.large {
					t.Errorf("%s: Vary = %q, want Accept-Encoding: %v", c.name, vary, c.large)
				}
				if n := a.header.Get("Content-Length"); c.large && n != strconv.Itoa(len(a.body)) {
					t.Errorf("%s: Content-Length = %s, want %d", c.name, n, len(a.body))
				}
			}
		}
	}
	r.url = base
	legacy["Accept-Encoding"], legacy[proxied] = "gzip", "192.0.2.1"
	var next []tool.Provided
	for _, x := range manyTools(2001) {
		next = append(next, tool.Provided{Tool: x})
	}
	if errs := r.reg.Replace("srv", next); errs != nil {
		t.Fatalf("Replace = %v, want no error", errs)
	}
	if got, compressed := unpacked(t, r.send("POST", listTools, legacy)); !compressed || !strings.Contains(got, `"srv__tool_2000"`) {
		t.Errorf("after a change: compressed = %v, the new tool is listed = %v; want both", compressed, strings.Contains(got, `"srv__tool_2000"`))
	}
}

// sink discards a response, and counts it.
type sink struct {
	header http.Header
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// listOnce lists the tools once, without a network.
func listOnce(srv *downstream.Server, header map[string]string) int {
	req := httptest.NewRequest("POST", "/mcp", strings.NewReader(listTools))
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	w := &sink{header: http.Header{}}
	srv.ServeHTTP(w, req)
	return w.n
}

// All lists of a profile share the bytes of one, plain and compressed.
func TestToolListIsShared(t *testing.T) {
	r := newRig(t, manyTools(5000)...)
	for _, encoding := range []string{"identity", "gzip"} {
		h := r.session() // a request id may be used once at a time
		h["Accept-Encoding"], h[proxied] = encoding, "192.0.2.1"
		first := listOnce(r.srv, h)
		res := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := listOnce(r.srv, h); n != first {
					b.Fatalf("list has %d bytes, want %d", n, first)
				}
			}
		})
		if got := res.AllocedBytesPerOp(); got > 64<<10 {
			t.Errorf("Accept-Encoding %s: each list of %d bytes allocates %d bytes, want at most 64 KiB", encoding, first, got)
		}
	}
	// Many at once.
	var wg sync.WaitGroup
	sessions := make([]map[string]string, 100)
	for i := range sessions {
		sessions[i] = r.session()
		sessions[i]["Accept-Encoding"], sessions[i][proxied] = "gzip", "192.0.2.1"
	}
	want := listOnce(r.srv, sessions[0])
	for _, h := range sessions {
		wg.Go(func() {
			if n := listOnce(r.srv, h); n != want {
				t.Errorf("list has %d bytes, want %d", n, want)
			}
		})
	}
	wg.Wait()
}

// BenchmarkToolList has 100 clients that list 5,000 tools over HTTP. Its time includes what the
// clients do: they discard the list, decompress it, or get it plain.
func BenchmarkToolList(b *testing.B) {
	for _, c := range []struct {
		name, encoding string
		unpack         bool
	}{{"plain", "identity", false}, {"gzip", "gzip", false}, {"gzip, decompressed", "gzip", true}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, manyTools(5000)...)
			hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}} //nolint:forbidigo // test
			defer hc.CloseIdleConnections()
			header := r.session()
			header["Accept-Encoding"], header[proxied] = c.encoding, "192.0.2.1"
			var ids atomic.Int64
			list := func() (n int64, err error) {
				body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%09d","method":"tools/list"}`, ids.Add(1))
				req, err := http.NewRequestWithContext(b.Context(), "POST", r.url, bytes.NewReader(body))
				if err != nil {
					return 0, err
				}
				req.Header.Set("Content-Type", "application/json")
				for k, v := range header {
					req.Header.Set(k, v)
				}
				resp, err := hc.Do(req)
				if err != nil {
					return 0, err
				}
				defer resp.Body.Close()
				var in io.Reader = resp.Body
				if c.unpack {
					if in, err = gzip.NewReader(in); err != nil {
						return 0, err
					}
				}
				return io.Copy(io.Discard, in)
			}
			size, err := list()
			if err != nil {
				b.Fatalf("list = %v, want no error", err)
			}
			b.ReportAllocs()
			b.SetParallelism(50)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if n, err := list(); err != nil || n != size {
						b.Errorf("list = %d bytes, %v; want %d bytes, no error", n, err, size)
						return
					}
				}
			})
			b.ReportMetric(float64(size), "bytes/list")
		})
	}
}
