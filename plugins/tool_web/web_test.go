package tool_web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/tool_web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeContext takes the tool.
type fakeContext struct {
	plugin.Context
	tool tool.Tool
}

func (*fakeContext) Config(string) json.RawMessage { return nil }

func (c *fakeContext) RegisterTool(t tool.Tool) error {
	c.tool = t
	return nil
}

// world is a web at 127.0.0.1, which stands for the internet, and somebody who is asked.
type world struct {
	t     *testing.T
	c     *fakeContext
	store *tool.Store
	port  string
	names map[string]string // addresses by name; others are 127.0.0.1
	asked []string
	no    map[string]string // hosts that are refused, with the reason
}

func (*world) Reachable() []string {
	return []string{"listed.example:*", "listed.example", "127.0.0.2:1", "localhost:1", "10.0.0.2:1"}
}

func (w *world) MayReach(_ context.Context, _ tool.Call, host string, port int, url string) (ok bool, why string) {
	w.asked = append(w.asked, net.JoinHostPort(host, strconv.Itoa(port))+" "+url)
	return w.no[host] == "", w.no[host]
}

func (*world) AllowHosts(hosts ...string) string { return "allow " + strings.Join(hosts, " ") }

func newWorld(t *testing.T, h http.HandlerFunc) *world {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	w := &world{t: t, c: &fakeContext{}, store: tool.NewStore(root), port: at.Port(), names: map[string]string{}, no: map[string]string{}}
	web := sandbox.Web{
		Public: func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") },
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			addr := w.names[host]
			if addr == "" {
				addr = "127.0.0.1"
			}
			return []netip.Addr{netip.MustParseAddr(addr)}, nil
		},
	}
	if err := tool_web.New(web, w, w.store).OnLoad(t.Context(), w.c); err != nil {
		t.Fatal(err)
	}
	return w
}

// at is the address of a page of the test's server.
func (w *world) at(host, path string) string {
	return "http://" + net.JoinHostPort(host, w.port) + path
}

func (w *world) fetch(raw string) tool.Result {
	w.t.Helper()
	args, err := json.Marshal(map[string]string{"url": raw})
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.c.tool.Invoke(w.t.Context(), tool.Call{ID: "c", Name: "web_fetch", Args: args, SessionID: "s"})
	if err != nil {
		w.t.Fatalf("Invoke(%s) = %v, want no error", args, err)
	}
	return res
}

func serve(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = io.WriteString(w, body)
	}
}

// A page is read as text, with the address and the title that it has.
func TestPagesAreText(t *testing.T) {
	var got *http.Request
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		serve("text/html", `<title>The  page</title><h1>Head</h1><p>One <a href="/two">two</a>.`)(w, r)
	})
	res := w.fetch(w.at("a.example", "/x?q=1#part"))
	want := "address: " + w.at("a.example", "/x?q=1") + "\ntitle: The page\n\n# Head\n\nOne [two](" + w.at("a.example", "/two") + ")."
	if !res.OK || res.Text() != want {
		t.Errorf("got %v %q, want %q", res.OK, res.Text(), want)
	}
	if !slices.Equal(w.asked, []string{"a.example:" + w.port + " " + w.at("a.example", "/x?q=1")}) {
		t.Errorf("asked %q, want about the host, once", w.asked)
	}
	if got.Method != http.MethodGet || got.Header.Get("Cookie")+got.Header.Get("Referer")+got.Header.Get("Authorization") != "" || got.Header.Get("User-Agent") != "yaya (web_fetch)" {
		t.Errorf("request %s with %v, want GET without cookies and referrer", got.Method, got.Header)
	}
	d := w.c.tool.Definition()
	if d.Kind != tool.KindNetwork || !d.ForAgents {
		t.Errorf("definition %+v, want one of the network for agents", d)
	}
}

// Types and charsets decide what arrives.
func TestTypesAndCharsets(t *testing.T) {
	long := strings.Repeat("a", 2000) + "é"
	for name, c := range map[string]struct{ kind, body, want, fails string }{
		"JSON":                  {"application/json", `{"a":1}`, `{"a":1}`, ""},
		"a type of JSON":        {"application/ld+json", `{"a":1}`, `{"a":1}`, ""},
		"a text":                {"text/plain; charset=utf-8", "é<b>", "é<b>", ""},
		"a text in Latin 1":     {"text/plain; charset=iso-8859-1", "caf\xe9", "café", ""},
		"Latin 1 to its end":    {"text/html", "<meta charset=iso-8859-1><p>caf\xe9", "café", ""},
		"a text in UTF-16":      {"text/plain", "\xff\xfeh\x00i\x00", "hi", ""},
		"a page in GBK":         {"text/html", "<meta charset=gbk><p>\xc4\xe3\xba\xc3", "你好", ""},
		"no type, a page":       {"application/octet-stream", "<html><p>x", "x", ""},
		"late UTF-8":            {"text/plain", long, long, ""},
		"UTF-8 that is damaged": {"text/plain; charset=utf-8", "a\xffb", "a\uFFFDb", ""},
		"an unknown charset":    {"text/plain; charset=nope", "abc", "abc", ""},
		"nothing":               {"text/plain", "", "[it has no text]", ""},
		"a page of scripts":     {"text/html", "<script>x</script>", "[the page has no text; it may be made by scripts, which are not run]", ""},
		"a document":            {"application/pdf", "%PDF\x2d1.7 \x00\x01", "", "has the type application/pdf, which is neither text nor a picture"},
		"bytes that say text":   {"text/plain", "\x00\x01\x02\x03", "", "has the type application/octet-stream"},
		"a damaged type":        {"\"", "plain", "plain", ""},
	} {
		w := newWorld(t, serve(c.kind, c.body))
		res := w.fetch(w.at("a.example", "/"))
		_, got, _ := strings.Cut(res.Text(), "\n\n")
		if c.fails != "" {
			if res.OK || !strings.Contains(res.Text(), c.fails) {
				t.Errorf("%s: %v %q, want an error about %q", name, res.OK, res.Text(), c.fails)
			}
			continue
		}
		if !res.OK || got != c.want {
			t.Errorf("%s: %v %.200q, want %.200q", name, res.OK, res.Text(), c.want)
		}
	}
}

// A picture arrives as one, whatever its server calls it; a large one is refused.
func TestPicturesArrive(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, serve("text/plain", b.String()))
	res := w.fetch(w.at("a.example", "/p.png"))
	if !res.OK || len(res.Artifacts) != 1 || res.Artifacts[0].MimeType != "image/png" || res.Artifacts[0].Size != int64(b.Len()) {
		t.Errorf("got %+v, want a picture as an artifact", res)
	}
	w = newWorld(t, serve("image/png", b.String()+strings.Repeat("\x00", 3_750_000)))
	if res := w.fetch(w.at("a.example", "/p.png")); res.OK || len(res.Artifacts) > 0 || !strings.Contains(res.Text(), "is a picture of more than 3750000 bytes") {
		t.Errorf("a large picture: %+v, want a refusal", res)
	}
}

// Each host that a redirect leads to is asked about; the same one is not asked about again in a call.
func TestRedirectsAreAskedAbout(t *testing.T) {
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/one":
			http.Redirect(rw, r, "/two", http.StatusFound)
		case "/two":
			http.Redirect(rw, r, w.at("b.example", "/three?secret"), http.StatusMovedPermanently)
		case "/three":
			if r.Header.Get("Referer") != "" {
				t.Errorf("referrer %q, want none", r.Header.Get("Referer"))
			}
			http.Redirect(rw, r, w.at("a.example", "/end"), http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(rw, r, "/loop", http.StatusSeeOther)
		case "/inside":
			http.Redirect(rw, r, w.at("inside.example", "/"), http.StatusFound)
		case "/file":
			rw.Header().Set("Location", "file:///etc/passwd")
			rw.WriteHeader(http.StatusFound)
		case "/nowhere":
			rw.WriteHeader(http.StatusFound)
		default:
			_, _ = io.WriteString(rw, "the end")
		}
	})
	w.names["inside.example"] = "10.0.0.1"
	res := w.fetch(w.at("a.example", "/one"))
	if !res.OK || res.Text() != "address: "+w.at("a.example", "/end")+"\n\nthe end" {
		t.Errorf("got %v %q, want the end", res.OK, res.Text())
	}
	if want := []string{"a.example:" + w.port + " " + w.at("a.example", "/one"), "b.example:" + w.port + " " + w.at("b.example", "/three?secret")}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %q, want %q", w.asked, want)
	}
	w.no["b.example"] = "its user was asked, and said no: not there"
	for path, want := range map[string]string{
		"/one":     w.at("b.example", "/three?secret") + " was not read: its user was asked, and said no: not there; its user can allow it: allow b.example:" + w.port,
		"/loop":    "redirects more than 5 times",
		"/inside":  "which is not of the public internet: if that is meant, read this address directly",
		"/file":    "it redirects, and the address is not https:// or http://",
		"/nowhere": "redirects more than 5 times",
	} {
		if res := w.fetch(w.at("a.example", path)); res.OK || !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %v %q, want %q", path, res.OK, res.Text(), want)
		}
	}
}

// Addresses that cannot be shown as they are requested are refused, and nobody is asked.
func TestAddresses(t *testing.T) {
	w := newWorld(t, serve("", "x"))
	for raw, want := range map[string]string{
		"":                                   "not https:// or http://",
		"a.example":                          "not https:// or http://",
		"ftp://a.example/":                   "not https:// or http://",
		"javascript:alert(1)":                "not https:// or http://",
		"http://user:pw@a.example/":          "without a password",
		"http://a.example/\n":                "cannot be read",
		"http://a.example/" + long(2048):     "more than 2048 bytes",
		"http://a\u202eb.example/":           "no valid host",
		"http://2130706433/":                 "does not name a host",
		w.at("0177.1", "/"):                  "does not name a host",
		"http://[::ffff:10.0.0.1]/":          "10.0.0.1 is not an address of the public internet",
		"http://169.254.169.254/latest/meta": "169.254.169.254 is not an address of the public internet",
	} {
		if res := w.fetch(raw); res.OK || !strings.Contains(res.Text(), want) {
			t.Errorf("%.100q: %v %q, want an error about %q", raw, res.OK, res.Text(), want)
		}
	}
	w.asked = nil
	if res := w.fetch(w.at("BÜCHER.example", "/")); !res.OK || len(w.asked) != 1 || !strings.HasPrefix(w.asked[0], "xn--bcher-kva.example:") {
		t.Errorf("a name in Unicode: %v, asked %q, want the name that is looked up", res.Text(), w.asked)
	}
}

func long(n int) string { return strings.Repeat("x", n) }

// Hostile pages cost no more than the bounds.
func TestHostilePages(t *testing.T) {
	bomb := func() []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		for range 200 {
			_, _ = z.Write(make([]byte, 1<<20))
		}
		_ = z.Close()
		return b.Bytes()
	}()
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string
		max  int
	}{
		"it never ends": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, long(64<<10)); err != nil {
					return
				}
			}
		}, "[it is longer: only its first 5242880 bytes were read]", 6 << 20},
		"a bomb of gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}, "only its first 5242880 bytes", 6 << 20},
		"damaged gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "no")
		}, "could not be read", 1 << 10},
		"another coding": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br, gzip")
			_, _ = io.WriteString(w, "no")
		}, `encoded as "br, gzip", which nobody has asked for`, 1 << 10},
		"deep nesting":         {serve("text/html", strings.Repeat("<div><ul><li>", 300_000)+"deep"), "deep", 1 << 20},
		"links that grow":      {serve("text/html", strings.Repeat("<a href=x>y</a>", 300_000)), "[the text is longer]", 5 << 20},
		"many attributes":      {serve("text/html", "<p "+strings.Repeat("a=b ", 500_000)+">text"), "text", 1 << 10},
		"a tag without an end": {serve("text/html", "text<p "+long(1<<20)), "text", 1 << 10},
		"an answer that stops": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "short")
		}, "could not be read: unexpected EOF", 1 << 10},
		"an error of the server": {func(w http.ResponseWriter, r *http.Request) { http.Error(w, "gone away", http.StatusGone) }, "answered with 410 Gone\naddress: ", 1 << 10},
	} {
		w := newWorld(t, c.h)
		res := w.fetch(w.at("a.example", "/"+long(1000)))
		if text := res.Text(); !strings.Contains(text, c.want) || len(text) > c.max+3000 {
			t.Errorf("%s: %d bytes, %.200q … %.200q, want %q in at most %d", name, len(text), text, text[max(0, len(text)-200):], c.want, c.max)
		}
	}
}

// The end of a call ends its request.
func TestCancelledCalls(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(over)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		cancel(errors.New("enough"))
	}()
	args := fmt.Appendf(nil, `{"url":%q}`, w.at("a.example", "/"))
	res, err := w.c.tool.Invoke(ctx, tool.Call{ID: "c", Name: "web_fetch", Args: args, SessionID: "s"})
	if err != nil || res.OK || res.ErrorKind != tool.ErrCancelled {
		t.Errorf("got %+v, %v, want a cancelled call", res, err)
	}
	<-over
}
