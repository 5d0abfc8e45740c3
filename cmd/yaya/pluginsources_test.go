package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
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
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/plugins/scaffold"
)

// packaged returns the files of a new plugin hello in a version, with other permissions.
func packaged(t *testing.T, lang, version, permissions string) map[string][]byte {
	t.Helper()
	files, err := scaffold.Files("hello", lang, "tool")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if !strings.Contains(name, "/") {
			files[name] = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("0.1.0"), []byte(version)), []byte("Hello, "), []byte("Hello from "+version+", "))
		}
	}
	files["plugin.toml"] = append(files["plugin.toml"], permissions...)
	return files
}

// zipped packs files below a folder into a zip, tarred into a .tar.gz.
func zipped(t *testing.T, at string, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		f, err := w.Create(at + name)
		if err == nil {
			_, err = f.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarred(t *testing.T, at string, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range files {
		err := w.WriteHeader(&tar.Header{Name: at + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sources is a box with a Git repository and registries of its own, which have the plugin hello
// in the versions that publish gives them.
type sources struct {
	*box
	repository string
	proxy      string

	mu     sync.Mutex        // of what the registries have
	npm    map[string][]byte // by version
	wheels map[string][]byte // by file
}

func newSources(t *testing.T, clients ...string) *sources {
	t.Helper()
	for _, name := range clients {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not here")
		}
	}
	s := &sources{box: newBox(t), npm: map[string][]byte{}, wheels: map[string][]byte{}}
	s.repository, s.proxy = filepath.Join(s.dir, "repository"), filepath.Join(s.dir, "proxy")
	registry := httptest.NewServer(http.HandlerFunc(s.serveRegistries))
	t.Cleanup(registry.Close)
	s.env = []string{
		"npm_config_registry=" + registry.URL + "/npm", "PIP_INDEX_URL=" + registry.URL + "/simple", "GOPROXY=file://" + s.proxy, "GOSUMDB=off", "GOFLAGS=",
	}
	if home, err := os.UserHomeDir(); err == nil && os.Getenv("PYENV_ROOT") == "" {
		s.env = append(s.env, "PYENV_ROOT="+filepath.Join(home, ".pyenv")) // the shims of pyenv look for it
	}
	return s
}

// run is [box.run] without its limit: the first build of a program in Go compiles Go's library.
func (s *sources) run(args ...string) (string, error) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.bin, s.args(args...)...)
	cmd.Env = s.environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *sources) must(args ...string) string {
	s.t.Helper()
	out, err := s.run(args...)
	if err != nil {
		s.t.Fatalf("yaya %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *sources) serveRegistries(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url := "http://" + r.Host
	switch path := r.URL.Path; {
	case path == "/npm/yaya-hello":
		versions := map[string]any{}
		var newest string
		for version, packed := range s.npm {
			sum := sha512.Sum512(packed)
			versions[version] = map[string]any{"name": "yaya-hello", "version": version, "dist": map[string]string{"tarball": url + "/npm/" + version + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}}
			newest = max(newest, version)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "yaya-hello", "dist-tags": map[string]string{"latest": newest}, "versions": versions})
	case strings.HasPrefix(path, "/npm/"):
		_, _ = w.Write(s.npm[strings.TrimSuffix(strings.TrimPrefix(path, "/npm/"), ".tgz")])
	case path == "/simple/yaya-hello/":
		w.Header().Set("Content-Type", "text/html")
		for name, packed := range s.wheels {
			sum := sha256.Sum256(packed)
			fmt.Fprintf(w, "<a href=\"/files/%s#sha256=%s\">%s</a>\n", name, hex.EncodeToString(sum[:]), name)
		}
	case strings.HasPrefix(path, "/files/"):
		_, _ = w.Write(s.wheels[strings.TrimPrefix(path, "/files/")])
	default:
		http.NotFound(w, r)
	}
}

// publish adds a version of the plugin to a registry or the repository.
func (s *sources) publish(kind, version, permissions string) {
	s.t.Helper()
	switch kind {
	case "git":
		files := packaged(s.t, "python", version, permissions)
		if err := os.MkdirAll(s.repository, 0o700); err != nil {
			s.t.Fatal(err)
		}
		s.put(s.repository, files)
		for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", version}, {"tag", "v" + version}} {
			cmd := exec.CommandContext(s.t.Context(), "git", args...) //nolint:gosec // of this test
			cmd.Dir = s.repository
			if out, err := cmd.CombinedOutput(); err != nil {
				s.t.Fatalf("git %q: %v\n%s", args, err, out)
			}
		}
	case "npm":
		packed := tarred(s.t, "package/", packaged(s.t, "typescript", version, permissions))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.npm[version] = packed
	case "pypi":
		files := map[string][]byte{}
		for name, text := range packaged(s.t, "python", version, permissions) {
			files["hello/"+name] = text
		}
		info := "yaya_hello-" + version + ".dist-info/"
		files[info+"METADATA"] = []byte("Metadata-Version: 2.1\nName: yaya-hello\nVersion: " + version + "\n")
		files[info+"WHEEL"] = []byte("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		files[info+"RECORD"] = nil
		packed := zipped(s.t, "", files)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wheels["yaya_hello-"+version+"-py3-none-any.whl"] = packed
	case "go":
		files := packaged(s.t, "go", version, permissions)
		at := filepath.Join(s.proxy, "example.com", "hello", "@v")
		if err := os.MkdirAll(at, 0o700); err != nil {
			s.t.Fatal(err)
		}
		s.put(at, map[string][]byte{
			"v" + version + ".info": []byte(`{"Version":"v` + version + `"}`), "v" + version + ".mod": files["go.mod"],
			"v" + version + ".zip": zipped(s.t, "example.com/hello@v"+version+"/", files),
		})
		known, err := filepath.Glob(filepath.Join(at, "*.info"))
		if err != nil {
			s.t.Fatal(err)
		}
		list := ""
		for _, name := range known {
			list += strings.TrimSuffix(filepath.Base(name), ".info") + "\n"
		}
		s.put(at, map[string][]byte{"list": []byte(list)})
	}
}

func (s *sources) put(at string, files map[string][]byte) {
	s.t.Helper()
	for name, text := range files {
		to := filepath.Join(at, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *sources) says(what string, out string, want ...string) {
	s.t.Helper()
	for _, part := range want {
		if !strings.Contains(out, part) {
			s.t.Errorf("%s says\n%swant %q", what, out, part)
		}
	}
}

// Y-103, Y-104: a plugin is fetched from each kind of source, shown and asked about, runs, and is
// updated from there; the update points out what is new.
func TestPluginSources(t *testing.T) {
	for _, c := range []struct {
		kind, name, at, resolved string
		clients                  []string
	}{
		{"git", "git+file://%s", "@v", "commit ", []string{"git", "python3"}},
		{"npm", "npm:yaya-hello", "@", "sha512-", []string{"npm", "node"}},
		{"pypi", "pypi:yaya-hello", "@", "wheel sha256:", []string{"python3"}},
		{"go", "go:example.com/hello", "@v", "h1:", []string{"go"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s := newSources(t, c.clients...)
			name := strings.Replace(c.name, "%s", s.repository, 1)
			first, second := name+c.at+"0.1.0", name+c.at+"0.2.0"
			s.publish(c.kind, "0.1.0", "")
			out := s.unasked("plugin", "install", first)
			s.says("plugin install", out, "hello 0.1.0", first, c.resolved, "sha256:", "category     tool", "permissions  none", "nothing was installed")
			if c.kind == "go" {
				s.says("plugin install", out, "go build -o hello")
			}
			if out := s.must("plugin", "list"); strings.Contains(out, "hello") {
				t.Errorf("plugin list says\n%swant nothing before the answer", out)
			}
			s.must("plugin", "install", first, "--yes")
			s.says("run", s.must("run", hello), "Hello from 0.1.0, Ada!")
			s.says("plugin list", s.must("plugin", "list"), first)
			s.says("plugin update", s.must("plugin", "update", "hello", "--yes"), "is what is installed")

			s.publish(c.kind, "0.2.0", "\n[permissions]\nnetwork = [\"api.example.com\"]\n")
			out = s.unasked("plugin", "update", "hello")
			s.says("plugin update", out, "hello 0.2.0", second, "replaces     version 0.1.0", "NEW PERMISSION: reaches the host api.example.com", "0.1.0 → 0.2.0", "nothing was updated")
			s.says("run", s.must("run", hello), "Hello from 0.1.0, Ada!")
			s.must("plugin", "update", "hello", "--yes")
			s.says("run", s.must("run", hello), "Hello from 0.2.0, Ada!")
			out = s.must("plugin", "update", "hello", "--version", strings.TrimPrefix(c.at, "@")+"0.1.0", "--yes")
			s.says("plugin update to the first version", out, "no longer: reaches the host api.example.com")
			s.says("run", s.must("run", hello), "Hello from 0.1.0, Ada!")
		})
	}
}

// The daemon installs what it has shown, and nothing that has changed since.
func TestPluginTwoSteps(t *testing.T) {
	t.Parallel()
	s := newSources(t, "git", "python3")
	s.publish("git", "0.1.0", "")
	s.serve()
	source := "git+file://" + s.repository
	var told struct {
		OK      bool
		Source  string
		Package struct{ Digest, Resolved, Source string }
	}
	propose := func() {
		t.Helper()
		s.admin("POST", "/plugins/install", fmt.Sprintf(`{"source":%q}`, source), http.StatusOK, &told)
		if told.OK || told.Package.Digest == "" || told.Source != source+"@v0.1.0" || !strings.HasPrefix(told.Package.Resolved, "commit ") {
			t.Fatalf("the answer is %+v, want a package that is not installed", told)
		}
	}
	install := func(digest string) string { return fmt.Sprintf(`{"source":%q,"digest":%q}`, told.Source, digest) }
	propose()
	s.admin("POST", "/plugins/install", install("sha256:"+strings.Repeat("0", 64)), http.StatusBadRequest, nil)
	// The second step installs the files that were shown, although the repository has gone.
	if err := os.Rename(s.repository, s.repository+"-gone"); err != nil {
		t.Fatal(err)
	}
	s.admin("POST", "/plugins/install", install(told.Package.Digest), http.StatusOK, &told)
	if !told.OK {
		t.Errorf("the answer is %+v, want that it is installed", told)
	}
	s.says("run", s.must("run", hello), "Hello from 0.1.0, Ada!")
	// It is held for one installation.
	s.admin("POST", "/plugins/install", install(told.Package.Digest), http.StatusInternalServerError, nil)
	if err := os.Rename(s.repository+"-gone", s.repository); err != nil {
		t.Fatal(err)
	}
	s.admin("POST", "/plugins/hello/update", `{}`, http.StatusOK, nil)
	s.admin("POST", "/plugins/nothing/update", `{}`, http.StatusBadRequest, nil)
	s.admin("POST", "/plugins/llm-echo/update", `{}`, http.StatusBadRequest, nil)
	var all struct{ Plugins []admin.Plugin }
	s.admin("GET", "/plugins", "", http.StatusOK, &all)
	i := slices.IndexFunc(all.Plugins, func(p admin.Plugin) bool { return p.Name == "hello" })
	if i < 0 {
		t.Fatalf("the plugins are %+v, want hello", all.Plugins)
	}
	if of := all.Plugins[i].Package; of == nil || of.Source != source+"@v0.1.0" || of.Digest == "" || !strings.HasPrefix(of.Resolved, "commit ") {
		t.Errorf("hello is of the package %+v, want its source, commit and digest", of)
	}
}

// A plugin in Go that is not built yet is built after the answer, from a copy: nothing is written
// into the folder, and what does not compile is not installed.
func TestUnbuiltPlugin(t *testing.T) {
	t.Parallel()
	s := newSources(t, "go")
	dir := filepath.Join(s.dir, "hello")
	s.put(dir, packaged(t, "go", "0.1.0", ""))
	if out, err := s.run("plugin", "install", "--yes", "--editable", dir); err == nil || !strings.Contains(out, "has to be built") {
		t.Errorf("plugin install --editable = %v\n%swant that it has to be built", err, out)
	}
	s.must("plugin", "install", "--yes", dir)
	s.says("run", s.must("run", hello), "Hello from 0.1.0, Ada!")
	if _, err := os.Stat(filepath.Join(dir, "hello")); err == nil {
		t.Error("the program was built in the user's folder")
	}
	s.says("plugin update", s.must("plugin", "update", "hello", "--yes"), "is what is installed")
	s.put(dir, map[string][]byte{"main.go": []byte("package main\n\nimport _ \"example.com/not/there\"\n\nfunc main() {}\n")})
	if out, err := s.run("plugin", "install", "--yes", dir); err == nil || !strings.Contains(out, "go build failed") || !strings.Contains(out, "example.com/not/there") {
		t.Errorf("plugin install = %v\n%swant the compiler's reason", err, out)
	}
	s.says("run", s.must("run", hello), "Hello from 0.1.0, Ada!")
}

// The modules that a plugin in Go requires are those of its go.sum, and no others.
func TestPluginWithModules(t *testing.T) {
	t.Parallel()
	s := newSources(t, "go")
	dep := map[string][]byte{"go.mod": []byte("module example.com/dep\n\ngo 1.21\n"), "dep.go": []byte("package dep\n\nconst Word = \"Required\"\n")}
	at := filepath.Join(s.proxy, "example.com", "dep", "@v")
	s.put(at, map[string][]byte{
		"list": []byte("v1.0.0\n"), "v1.0.0.info": []byte(`{"Version":"v1.0.0"}`), "v1.0.0.mod": dep["go.mod"], "v1.0.0.zip": zipped(t, "example.com/dep@v1.0.0/", dep),
	})
	dir := filepath.Join(s.dir, "hello")
	files := packaged(t, "go", "0.1.0", "")
	files["main.go"] = bytes.Replace(bytes.Replace(files["main.go"], []byte("\"context\"\n"), []byte("\"context\"\n\n\t\"example.com/dep\"\n"), 1), []byte(`"Hello from 0.1.0, "`), []byte("dep.Word"), 1)
	files["go.mod"] = append(files["go.mod"], "\nrequire example.com/dep v1.0.0\n"...)
	s.put(dir, files)
	if out, err := s.run("plugin", "install", "--yes", dir); err == nil || !strings.Contains(out, "go.sum") {
		t.Errorf("plugin install without go.sum = %v\n%swant that it is missing", err, out)
	}
	tidy := exec.CommandContext(t.Context(), "go", "mod", "tidy")
	tidy.Dir, tidy.Env = dir, append(s.environ(), "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw")
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Fatalf("go mod tidy: %v\n%s", err, out)
	}
	s.must("plugin", "install", "--yes", dir)
	s.says("run", s.must("run", hello), "RequiredAda!")
	// Other files under the same version are not what go.sum says.
	dep["dep.go"] = []byte("package dep\n\nconst Word = \"Changed\"\n")
	s.put(at, map[string][]byte{"v1.0.0.zip": zipped(t, "example.com/dep@v1.0.0/", dep)})
	if out, err := s.run("plugin", "install", "--yes", dir); err == nil || !strings.Contains(out, "checksum mismatch") {
		t.Errorf("plugin install with another module = %v\n%swant that its checksum is wrong", err, out)
	}
}
