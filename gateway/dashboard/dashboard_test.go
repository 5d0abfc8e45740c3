package dashboard_test

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/dashboard"
)

func get(t *testing.T, h http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.URL.Path = path
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body) //nolint:forbidigo // test
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// UI-03: the exact headers, on every answer, errors among them.
func TestHeaders(t *testing.T) {
	h, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/ui/app.css", "/ui/nothing", "/ui/"} {
		got := get(t, h, path).Header
		for name, want := range map[string]string{
			"Content-Security-Policy":      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"X-Frame-Options":              "DENY",
		} {
			if got.Get(name) != want {
				t.Errorf("%s: got %s is %q, want %v", path, name, got.Get(name), want)
			}
		}
	}
}

// UI-09: nothing but the files, each as what it is.
func TestNothingElseIsServed(t *testing.T) {
	h, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{"/": "text/html; charset=utf-8", first(t, h): "text/javascript; charset=utf-8", "/ui/app.css": "text/css; charset=utf-8", "/ui/icon.svg": "image/svg+xml", "/ui/zh.json": "application/json", "/ui/vendor/htm.LICENSE.txt": "text/plain; charset=utf-8"} {
		r := get(t, h, path)
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != kind || r.Header.Get("ETag") == "" {
			t.Errorf("%s: got %d %q, want StatusCode 200, Content-Type %v, a ETag", path, r.StatusCode, r.Header.Get("Content-Type"), kind)
		}
	}
	for _, path := range []string{"/ui/", "/ui/vendor", "/ui/vendor/", "/ui/index.html", "/ui/../dashboard.go", "/ui/..%2fdashboard.go", "/ui/vendor/../app.css", "/ui//app.css", "/ui/app.css.map", "/ui/app.js", "/ui/vendor/preact.js", "/ui/tsconfig.json", "/ui/vendor/preact.d.ts", "/ui/\x00", "/etc/passwd"} {
		if r := get(t, h, path); r.StatusCode != 404 || strings.Contains(body(t, r), "preact") {
			t.Errorf(`%q: got %d, want StatusCode 404, nothing of "preact"`, path, r.StatusCode)
		}
	}
}

// A file that the browser has is not sent again, nor asked about if its name changes with it; a compressible file
// is sent compressed.
func TestCaching(t *testing.T) {
	h, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	plain := get(t, h, "/ui/app.css")
	if r := get(t, h, "/ui/app.css", "If-None-Match", plain.Header.Get("ETag")); r.StatusCode != 304 || body(t, r) != "" {
		t.Errorf("got %d, want 304 without a body", r.StatusCode)
	}
	for path, want := range map[string]string{"/": "no-cache", "/ui/app.css": "no-cache", "/ui/zh.json": "no-cache", first(t, h): "public, max-age=31536000, immutable"} {
		if got := get(t, h, path).Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: the Cache-Control is %q, want %q", path, got, want)
		}
	}
	for accepted, want := range map[string]string{"": "", "gzip": "gzip", "br, GZIP ;q=0.5": "gzip", "gzip;q=0": "", "gzip; q=0.000": "", "xgzip": "", "br": "", "gzip;q=x": ""} {
		r := get(t, h, "/ui/app.css", "Accept-Encoding", accepted)
		if got := r.Header.Get("Content-Encoding"); got != want || (r.Header.Get("ETag") == plain.Header.Get("ETag")) != (want == "") {
			t.Errorf("%q gets %q with the ETag %s, want %q, and an ETag of its own", accepted, got, r.Header.Get("ETag"), want)
		}
		if again := get(t, h, "/ui/app.css", "Accept-Encoding", accepted, "If-None-Match", r.Header.Get("ETag")); again.StatusCode != 304 {
			t.Errorf("%q: what it has is sent again: %d", accepted, again.StatusCode)
		}
	}
	if r := get(t, h, "/ui/app.css", "If-None-Match", "*"); r.StatusCode != 304 {
		t.Errorf("any: %d, want 304", r.StatusCode)
	}
	packed := get(t, h, "/ui/app.css", "Accept-Encoding", "gzip, br")
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z) //nolint:forbidigo // test
	if err != nil || string(data) != body(t, plain) || packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("got %d bytes, %v, %v", len(data), packed.Header, err)
	}
}

// The server asks for the texts of another language beside the first script.
func TestTexts(t *testing.T) {
	h, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	chinese := "</ui/zh.json>; rel=preload; as=fetch; crossorigin=anonymous"
	for languages, want := range map[string]string{
		"": "", "en": "", "en-US,en;q=0.9,zh;q=0.8": "", "de": "", "../bundle/zh": "", "zh;q=0, de": "", "zh; q=0.000": "", "package": "", ",;,-": "",
		"zh": chinese, "zh-CN,zh;q=0.9,en;q=0.8": chinese, "de, zh-TW;q=0.5": chinese,
	} {
		r := get(t, h, "/", "Accept-Language", languages)
		if got := r.Header.Get("Link"); got != want || !slices.Equal(r.Header.Values("Vary"), []string{"Accept-Language", "Accept-Encoding"}) {
			t.Errorf("%q: got the link %q, which varies by %q, want %q", languages, got, r.Header.Values("Vary"), want)
		}
	}
	if r := get(t, h, "/ui/zh.json"); r.StatusCode != 200 {
		t.Errorf("the texts: %d, want 200", r.StatusCode)
	}
	if got := get(t, h, "/ui/app.css", "Accept-Language", "zh").Header.Get("Link"); got != "" {
		t.Errorf("a style sheet has the link %q, want none", got)
	}
}

// first returns the path of the script that the page begins with.
func first(t *testing.T, h http.Handler) string {
	t.Helper()
	m := regexp.MustCompile(`<script type="module" async src="(/ui/begin-[A-Z2-7]{8}\.js)">`).FindStringSubmatch(body(t, get(t, h, "/")))
	if m == nil {
		t.Fatal("the page has no first script")
	}
	return m[1]
}

// view returns the path of the file that a module, which is loaded later, has become.
func view(t *testing.T, module string) string {
	t.Helper()
	all, err := filepath.Glob("bundle/" + module + "-*.js")
	if err != nil || len(all) != 1 {
		t.Fatalf("%s was made into %v, %v, want one file", module, all, err)
	}
	return "/ui/" + filepath.Base(all[0])
}

var imports = regexp.MustCompile(`(?:\bfrom|\bimport)(\(?)"(\./[^"]+)"`)

// The first load is less than 150 KiB, uncompressed: the page, its style, and every
// module that is not loaded later by itself. The overview is part of it.
func TestFirstLoadIsSmall(t *testing.T) {
	h, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	total := 0
	var load func(path string)
	load = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		r := get(t, h, path)
		text := body(t, r)
		if r.StatusCode != 200 {
			t.Fatalf("%s: got %d, want 200", path, r.StatusCode)
		}
		total += len(text)
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			if m[1] != "" {
				continue // a view, when it is looked at
			}
			dir := path[:strings.LastIndex(path, "/")]
			load(dir + strings.TrimPrefix(m[2], "."))
		}
	}
	for _, path := range []string{"/", "/ui/app.css", "/ui/icon.svg", "/ui/icons.svg", first(t, h), view(t, "app"), view(t, "overview")} {
		load(path)
	}
	if total < 50<<10 {
		t.Errorf("the first load is %d bytes: something was not found", total)
	}
	t.Logf("the first load is %d bytes in %d files", total, len(seen))
	if total >= 150<<10 {
		t.Errorf("the first load is %d bytes", total)
	}
}

// The page names all modules that it begins with, so that the browser asks for them at once and not
// one after the other as it reads them; the first view needs no other module than its own.
func TestFirstLoadIsOneRound(t *testing.T) {
	h, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:href|src)="(/ui/[^"]+\.js)"`).FindAllStringSubmatch(body(t, get(t, h, "/")), -1) {
		named[m[1]] = true
	}
	needed := map[string]bool{}
	var needs func(path string)
	needs = func(path string) {
		if needed[path] {
			return
		}
		needed[path] = true
		for _, m := range imports.FindAllStringSubmatch(body(t, get(t, h, path)), -1) {
			if m[1] == "" { // others are loaded when they are used
				needs(path[:strings.LastIndex(path, "/")] + strings.TrimPrefix(m[2], "."))
			}
		}
	}
	needs(first(t, h))
	needs(view(t, "app"))
	if !maps.Equal(named, needed) {
		t.Errorf("index.html names %v, want %v", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(needed)))
	}
	if len(needed) > 5 {
		t.Errorf("the page begins with %d scripts, want 5 at most: %v", len(needed), slices.Sorted(maps.Keys(needed)))
	}
	needs(view(t, "overview"))
	if more := len(needed) - len(named); more != 1 {
		t.Errorf("the first view needs %d modules beside those of the page, want its own alone: %v", more, slices.Sorted(maps.Keys(needed)))
	}
}

// UI-06, R8: the page has no parameters, and one that is asked for with some is not
// there: the browser is sent to the address without them, whatever they are.
func TestNoParameters(t *testing.T) {
	h, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/?token=canary", "/?device_token=canary", "/?x", "/?code=canary&token=canary"} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if rec.Code != 303 || rec.Header().Get("Location") != "/" || rec.Header().Get("Cache-Control") != "no-store" || rec.Body.Len() > 0 {
			t.Errorf("%s: got %d to %q, want 303 to /", path, rec.Code, rec.Header().Get("Location"))
		}
	}
	if r := get(t, h, "/"); r.StatusCode != 200 {
		t.Errorf("/: got %d, want 200", r.StatusCode)
	}
}

// COD-9: a module has one subject, says which, and is checked; any stands only where a
// type cannot be had: the payload of a frame, and data before its path gives it a type.
func TestModulesKeepOneSubject(t *testing.T) {
	files, err := filepath.Glob("page/*.js")
	if err != nil || len(files) < 30 {
		t.Fatalf("Glob = %d modules, %v, want all of the page", len(files), err)
	}
	const maxLines, maxAny = 300, 2
	var anys []string
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if n := strings.Count(text, "\n"); n > maxLines {
			t.Errorf("%s has %d lines, want at most %d: more hold a second subject", name, n, maxLines)
		}
		if !regexp.MustCompile(`^(// .+\n)+// @ts-check\n`).MatchString(text) {
			t.Errorf("%s begins with %.40q, want its subject and // @ts-check", name, text)
		}
		for _, m := range regexp.MustCompile(`\{[^}\n]*\bany\b[^}\n]*\}`).FindAllString(text, -1) {
			anys = append(anys, name+": "+m)
		}
	}
	if len(anys) > maxAny {
		t.Errorf("any is the type %d times, want at most %d:\n%s", len(anys), maxAny, strings.Join(anys, "\n"))
	}
}
