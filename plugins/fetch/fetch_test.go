package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/proc"
)

const description = `name = "weather"
version = "1.0.0"
category = "tool"
run = ["python3", "main.py"]
`

// plugin has the files of a plugin, below a folder ("" or "x/").
func plugin(at string, more map[string]string) map[string]string {
	files := map[string]string{at + "plugin.toml": description, at + "main.py": "pass\n"}
	for name, text := range more {
		files[name] = text
	}
	return files
}

// world is a machine from which packages are fetched: a home folder, and registries on loopback.
type world struct {
	t    *testing.T
	home string
	c    *Client
}

func newWorld(t *testing.T, clients ...string) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no other programs")
	}
	for _, name := range clients {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not here")
		}
	}
	procs := new(proc.Manager)
	t.Cleanup(func() { procs.Close(context.Background()) })
	w := &world{t: t, home: t.TempDir(), c: &Client{Procs: procs, Time: time.Minute}}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains([]string{"HOME", "GOPROXY", "GOSUMDB", "GOFLAGS", "GONOSUMDB", "GOPRIVATE", "XDG_CONFIG_HOME", "TMPDIR"}, name) && !strings.HasPrefix(name, "PIP_") && !strings.HasPrefix(strings.ToLower(name), "npm_config_") {
			w.c.Env = append(w.c.Env, kv)
		}
	}
	if root := os.Getenv("HOME") + "/.pyenv"; os.Getenv("PYENV_ROOT") == "" { // the shims of pyenv look for it
		if _, err := os.Stat(root); err == nil {
			w.set("PYENV_ROOT", root)
		}
	}
	w.set("HOME", w.home)
	w.set("TMPDIR", t.TempDir())
	return w
}

func (w *world) set(name, value string) { w.c.Env = append(w.c.Env, name+"="+value) }

func (w *world) fetch(source string) (*Fetched, error) {
	w.t.Helper()
	s, _, err := Parse(source)
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := w.c.Fetch(w.t.Context(), s)
	if err == nil {
		w.t.Cleanup(func() {
			if err := f.Close(); err != nil {
				w.t.Errorf("Close() = %v, want no error", err)
			}
			if _, err := os.Stat(f.Folder); !errors.Is(err, os.ErrNotExist) {
				w.t.Errorf("%s is still there: %v", f.Folder, err)
			}
		})
	}
	return f, err
}

func (w *world) got(source string) *Fetched {
	w.t.Helper()
	f, err := w.fetch(source)
	if err != nil {
		w.t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(f.Folder, "plugin.toml")); err != nil || string(text) != description {
		w.t.Errorf("%s has the plugin.toml %q (%v), want that of the package", source, text, err)
	}
	return f
}

// refused fetches a package with which something is wrong.
func (w *world) refused(source, want string) {
	w.t.Helper()
	f, err := w.fetch(source)
	if _, failed := errors.AsType[*ClientError](err); err == nil || failed || !strings.Contains(err.Error(), want) {
		w.t.Errorf("Fetch(%s) = %+v, %v; want %q, as a fault of the package", source, f, err, want)
	}
}

// fails fetches a package that its client does not get.
func (w *world) fails(source, want string) {
	w.t.Helper()
	f, err := w.fetch(source)
	if _, failed := errors.AsType[*ClientError](err); !failed || !strings.Contains(err.Error(), want) {
		w.t.Errorf("Fetch(%s) = %+v, %v; want %q, as a failure of the client", source, f, err, want)
	}
}

// marks returns a command that would leave a mark, and a check that it did not run.
func (w *world) marks() (command string, check func()) {
	mark := filepath.Join(w.t.TempDir(), "mark")
	return "touch " + mark, func() {
		w.t.Helper()
		if _, err := os.Stat(mark); err == nil {
			w.t.Error("code of the package has run")
		}
	}
}

// serve serves a registry on loopback.
func (w *world) serve(h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	return s.URL
}

// npm serves versions of packages, each a .tgz by its name and version ("name@1.0.0").
func (w *world) npm(packages map[string][]byte) {
	var url string
	url = w.serve(func(rw http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/")
		if packed, ok := packages[strings.TrimSuffix(path, ".tgz")]; ok {
			_, _ = rw.Write(packed)
			return
		}
		versions, newest := map[string]any{}, ""
		for _, id := range slices.Sorted(func(yield func(string) bool) {
			for id := range packages {
				if !yield(id) {
					return
				}
			}
		}) {
			at := strings.LastIndexByte(id, '@')
			if name, version := id[:at], id[at+1:]; name == path {
				sum := sha512.Sum512(packages[id])
				newest = version
				versions[version] = map[string]any{"name": name, "version": version, "scripts": map[string]string{"install": "false"}, "dist": map[string]string{
					"tarball": url + "/" + id + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
				}}
			}
		}
		if newest == "" {
			http.NotFound(rw, r)
			return
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"name": path, "dist-tags": map[string]string{"latest": newest}, "versions": versions})
	})
	w.set("npm_config_registry", url)
}

// pypi serves files of one project by their names.
func (w *world) pypi(project string, files map[string][]byte) {
	w.set("PIP_INDEX_URL", w.serve(func(rw http.ResponseWriter, r *http.Request) {
		if file, ok := files[strings.TrimPrefix(r.URL.Path, "/files/")]; ok {
			_, _ = rw.Write(file)
			return
		}
		if r.URL.Path != "/simple/"+project+"/" {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		for name, file := range files {
			sum := sha256.Sum256(file)
			fmt.Fprintf(rw, "<a href=\"/files/%s#sha256=%s\">%s</a>\n", name, hex.EncodeToString(sum[:]), name)
		}
	})+"/simple")
}

func wheel(t *testing.T, version, meta string, files map[string]string) []byte {
	t.Helper()
	all := map[string]string{
		"yaya_weather-" + version + ".dist-info/METADATA": "Metadata-Version: 2.1\nName: yaya-weather\nVersion: " + version + "\n" + meta,
		"yaya_weather-" + version + ".dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"yaya_weather-" + version + ".dist-info/RECORD":   "",
	}
	for name, text := range files {
		all[name] = text
	}
	return zipOf(t, all)
}

// goProxy serves versions of a module from a folder.
func (w *world) goProxy(module string, versions map[string]map[string]string) {
	dir := w.t.TempDir()
	at := filepath.Join(dir, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		w.t.Fatal(err)
	}
	list := ""
	for version, files := range versions {
		list += version + "\n"
		in := map[string]string{}
		for name, text := range files {
			in[module+"@"+version+"/"+name] = text
		}
		for name, text := range map[string]string{
			version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, version), version + ".mod": files["go.mod"], version + ".zip": string(zipOf(w.t, in)),
		} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(at, "list"), []byte(list), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.set("GOPROXY", "file://"+dir)
	w.set("GOSUMDB", "off")
}

// Y-103: npm fetches the newest version or the named one, and runs no script of it.
func TestNPM(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "npm")
	evil, check := w.marks()
	scripts := fmt.Sprintf(`{"name":"yaya-weather","version":"1.1.0","scripts":{"preinstall":%[1]q,"install":%[1]q,"postinstall":%[1]q,"prepare":%[1]q,"prepack":%[1]q,"postpack":%[1]q,"prepublish":%[1]q}}`, evil)
	w.npm(map[string][]byte{
		"yaya-weather@1.0.0": tgz(t, plugin("package/", nil)),
		"yaya-weather@1.1.0": tgz(t, plugin("package/", map[string]string{"package/package.json": scripts})),
		"@me/weather@2.0.0":  tgz(t, plugin("package/", nil)),
		"needy@1.0.0":        tgz(t, plugin("package/", map[string]string{"package/package.json": `{"dependencies":{"left-pad":"1"}}`})),
		"bundled@1.0.0":      tgz(t, plugin("package/", map[string]string{"package/package.json": `{"dependencies":{"left-pad":"1"}}`, "package/node_modules/left-pad/index.js": ""})),
		"links@1.0.0":        tgz(t, plugin("package/", map[string]string{"->package/link": "/etc/passwd"})),
		"outside@1.0.0":      tgz(t, plugin("package/", map[string]string{"package/../../evil": "x"})),
	})
	for source, want := range map[string]string{
		"npm:yaya-weather": "npm:yaya-weather@1.1.0", "npm:yaya-weather@1.0.0": "npm:yaya-weather@1.0.0", "npm:@me/weather": "npm:@me/weather@2.0.0", "npm:bundled": "npm:bundled@1.0.0",
	} {
		if f := w.got(source); f.Source.String() != want || !strings.HasPrefix(f.Resolved, "sha512-") {
			t.Errorf("%s is %s, %q; want %s and its integrity", source, f.Source, f.Resolved, want)
		}
	}
	check()
	w.fails("npm:nothing", "404")
	w.fails("npm:yaya-weather@9.9.9", "9.9.9")
	w.refused("npm:needy", "left-pad")
	w.refused("npm:links", "no links")
	w.refused("npm:outside", "outside")
	if left, err := filepath.Glob(filepath.Join(w.home, "*")); err != nil || len(left) > 0 {
		t.Errorf("npm left %v in the home folder (%v)", left, err)
	}
}

// Y-103: pip fetches wheels and nothing that it would have to run.
func TestPyPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "python3")
	evil, check := w.marks()
	setup := "import os\nos.system(" + fmt.Sprintf("%q", evil) + ")\n"
	w.pypi("yaya-weather", map[string][]byte{
		"yaya_weather-1.0.0-py3-none-any.whl": wheel(t, "1.0.0", "", plugin("weather/", nil)),
		"yaya_weather-1.1.0-py3-none-any.whl": wheel(t, "1.1.0", "Requires-Dist: requests>=2\nRequires-Dist: pytest; extra == 'test'\n\nRequires-Dist: nothing\n", plugin("", nil)),
		"yaya_weather-1.2.0-py3-none-any.whl": wheel(t, "1.2.0", "", plugin("", map[string]string{"->link": "/etc/passwd"})),
		"yaya_weather-1.3.0-py3-none-any.whl": wheel(t, "1.3.0", "Requires-Dist: pytest; extra == 'test'\n", plugin("", nil)),
		"yaya_weather-2.0.0.tar.gz":           tgz(t, map[string]string{"yaya_weather-2.0.0/setup.py": setup, "yaya_weather-2.0.0/plugin.toml": description, "yaya_weather-2.0.0/PKG-INFO": "Metadata-Version: 1.0\nName: yaya-weather\nVersion: 2.0.0\n"}),
	})
	for source, want := range map[string]string{"pypi:yaya-weather@1.0.0": "pypi:yaya-weather@1.0.0", "pypi:yaya-weather": "pypi:yaya-weather@1.3.0"} {
		if f := w.got(source); f.Source.String() != want || !strings.HasPrefix(f.Resolved, "wheel sha256:") {
			t.Errorf("%s is %s, %q; want %s and its digest", source, f.Source, f.Resolved, want)
		}
	}
	w.refused("pypi:yaya-weather@1.1.0", "1 package that it does not bring (requests>=2)")
	w.refused("pypi:yaya-weather@1.2.0", "no links")
	w.fails("pypi:yaya-weather@2.0.0", "wheels only")
	w.fails("pypi:nothing", "No matching distribution")
	check()
}

// Y-103: go fetches a module with its digest.
func TestGoModule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "go")
	files := func(description string) map[string]string {
		return map[string]string{"go.mod": "module example.com/weather\n\ngo 1.21\n", "plugin.toml": description, "main.go": "package main\n\nfunc main() {}\n"}
	}
	w.goProxy("example.com/weather", map[string]map[string]string{"v1.0.0": files(description), "v1.2.0": files(description)})
	for source, want := range map[string]string{"go:example.com/weather": "go:example.com/weather@v1.2.0", "go:example.com/weather@v1.0.0": "go:example.com/weather@v1.0.0"} {
		if f := w.got(source); f.Source.String() != want || !strings.HasPrefix(f.Resolved, "h1:") {
			t.Errorf("%s is %s, %q; want %s and its digest", source, f.Source, f.Resolved, want)
		}
	}
	w.refused("go:example.com/weather@v9.9.9", "v9.9.9")
	w.refused("go:example.com/nothing", "nothing")
}

// A registry that does not answer, one that never stops, and a client that is missing.
func TestBounds(t *testing.T) {
	t.Parallel()
	t.Run("a registry that hangs", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "npm")
		w.c.Time = 2 * time.Second
		w.set("npm_config_registry", w.serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		began := time.Now()
		w.fails("npm:weather", "it took more than 2s")
		if d := time.Since(began); d > DefaultTime/2 {
			t.Errorf("it took %v to give up after 2s", d)
		}
	})
	t.Run("a caller that has gone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "npm")
		ctx, cancel := context.WithCancel(t.Context())
		w.set("npm_config_registry", w.serve(func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		}))
		if _, err := w.c.Fetch(ctx, Source{Kind: NPM, Name: "weather"}); !errors.Is(err, context.Canceled) {
			t.Errorf("Fetch() = %v, want that it was canceled", err)
		}
	})
	t.Run("a package without an end", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "python3")
		w.c.Bytes = 4 << 20
		w.set("PIP_INDEX_URL", w.serve(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/files/") {
				rw.Header().Set("Content-Type", "text/html")
				fmt.Fprint(rw, `<a href="/files/weather-1.0.0-py3-none-any.whl">x</a>`)
				return
			}
			for block := make([]byte, 64<<10); ; {
				if _, err := rw.Write(block); err != nil {
					return
				}
			}
		})+"/simple")
		w.fails("pypi:weather", "larger than 4 MiB")
	})
	for _, source := range []string{"npm:weather", "pypi:weather", "go:example.com/weather", "git+https://example.com/weather"} {
		t.Run("without the client of "+source, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.c.Env = []string{"PATH=" + t.TempDir()}
			w.fails(source, "is not in PATH: install ")
		})
	}
}

// Y-104: nothing is left of what was refused.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t, "npm")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	w.npm(map[string][]byte{"links@1.0.0": tgz(t, plugin("package/", map[string]string{"->package/link": "/etc/passwd"}))})
	w.refused("npm:links", "no links")
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v are left (%v), want nothing", left, err)
	}
}
