package sandbox

import (
	"archive/zip"
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostModule puts a module into the module cache of a home folder, as Go does.
func hostModule(t *testing.T, home, path, version string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{"go.mod": "module " + path + "\n", "a.go": "package a // of the host\n"} {
		f, err := z.Create(path + "@" + version + "/" + name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(home, "go/pkg/mod/cache/download", strings.ReplaceAll(path, "P", "!p"), "@v")
	if err := errors.Join(z.Close(), os.MkdirAll(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{version + ".mod": "module " + path + "\n", version + ".info": `{"Version":"` + version + `"}`, version + ".zip": b.String(), "list": version + "\n"} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Modules that the host has are there without a setting and without a network, private
// ones among them, and Go in a sandbox writes only to its own folders.
func TestModulesOfTheHost(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, name := range []string{"command", "check"} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				b := needs(t, backend)
				p := newPlace(t)
				b.Own = []string{p.own}
				hostModule(t, p.home, "corp.example/Private", "v1.0.0")
				hostModule(t, p.home, "example.com/public", "v1.0.0")
				for name, text := range map[string]string{
					p.home + "/.config/go/env": "GOPRIVATE=corp.example\nGOPROXY=off\nGONOSUMDB=*\nGOFLAGS=-mod=mod\nGOTOOLCHAIN=local\n", p.home + "/go/bin/tool": "#!/bin/sh\necho tool of the host\n",
					p.ws + "/go.mod": "module a\n\ngo 1.24\n\nrequire (\n\tcorp.example/Private v1.0.0\n\texample.com/public v1.0.0\n)\n",
				} {
					if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o700)); err != nil {
						t.Fatal(err)
					}
				}
				before := contents(t, p.home)
				pol := p.policy(t, name)
				pol.Cache = p.dir + "/cache"
				const script = `cat $(go list -m -f '{{.Dir}}' corp.example/Private example.com/public | sed 's,$,/a.go,') && $(go env GOPATH)/bin/tool && go env GOMODCACHE GOFLAGS && touch $(go env GOMODCACHE)/x $(go env GOPATH)/pkg/x`
				got, err := b.start(t, pol, p.ws, nil, "sh", "-c", "go mod download && "+script)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Repeat("package a // of the host\n", 2) + "tool of the host\n" + p.dir + "/cache/go/pkg/mod\n-mod=mod -modcacherw\n"
				if got.code != 0 || !strings.HasSuffix(got.out, want) {
					t.Errorf("code %d, output %q, want %q", got.code, got.out, want)
				}
				if now := contents(t, p.home); now != before {
					t.Errorf("the home folder after the sandbox:\n%swant:\n%s", now, before)
				}
				// Modules that one sandbox has fetched are available in the next one, whatever
				// happens to the host's.
				if err := os.RemoveAll(p.home + "/go/pkg"); err != nil {
					t.Fatal(err)
				}
				pol = p.policy(t, "check")
				pol.Cache = p.dir + "/cache"
				if got, err = b.start(t, pol, p.ws, nil, "sh", "-c", script); err != nil || got.code != 0 {
					t.Errorf("a check afterwards: code %d, output %q, %v", got.code, got.out, err)
				}
			})
		}
	}
}

// The proxy of modules tells versions that the host has. It leaves the latest
// version to other proxies, and asks no other proxy about private modules.
func TestProxyOfModules(t *testing.T) {
	home := t.TempDir()
	hostModule(t, home, "example.com/public", "v1.0.0")
	hostModule(t, home, "corp.example/Private/x", "v1.0.0")
	if err := os.WriteFile(home+"/secret.mod", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home+"/secret.mod", home+"/go/pkg/mod/cache/download/example.com/public/@v/v2.0.0.mod"); err != nil {
		t.Fatal(err)
	}
	g := hostGo([]string{"GOPRIVATE=*.example.org,corp.example/Private"}, home)
	for _, c := range []struct {
		path string
		code int
	}{
		{"/example.com/public/@v/v1.0.0.zip", http.StatusOK},
		{"/example.com/public/@v/v1.0.0.mod", http.StatusOK},
		{"/example.com/public/@v/list", http.StatusNotFound},
		{"/example.com/public/@latest", http.StatusNotFound},
		{"/example.com/public/@v/v9.0.0.info", http.StatusNotFound},
		{"/example.com/public/@v/v2.0.0.mod", http.StatusNotFound},
		{"/example.com/public/@v/../../../../../../../../secret.mod", http.StatusNotFound},
		{"/example.com/public/@v", http.StatusNotFound},
		{"/sumdb/sum.golang.org/supported", http.StatusNotFound},
		{"/corp.example/!private/x/@v/list", http.StatusOK},
		{"/corp.example/!private/x/@v/v1.0.0.info", http.StatusOK},
		{"/corp.example/!private/x/@v/v2.0.0.info", http.StatusForbidden},
		{"/corp.example/!private/x/@latest", http.StatusForbidden},
		{"/git.example.org/y/@v/list", http.StatusForbidden},
		{"/corp.example/other/@v/list", http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Code != c.code || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("GET %s = %d %q, want %d", c.path, w.Code, w.Body, c.code)
		}
	}
}

// Files that a program in a sandbox puts in the place of yaya's links to host tools
// change nothing outside its cache, and break no later start.
func TestLinksToToolsOfTheHost(t *testing.T) {
	for _, plant := range []string{"ln -s %s %s/go", "mkdir %[2]s/go; ln -s %s %s/go/bin", "touch %[2]s/go # %s"} {
		home, cache, outside := t.TempDir(), t.TempDir(), t.TempDir()
		if err := errors.Join(os.MkdirAll(home+"/go/bin", 0o700), os.WriteFile(home+"/go/bin/tool", nil, 0o700)); err != nil {
			t.Fatal(err)
		}
		cmd := strings.NewReplacer("%[2]s", cache, "%s %s", outside+" "+cache, "%s", outside).Replace(plant)
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", cmd).CombinedOutput(); err != nil {
			t.Fatalf("script %q = %v, want no error: %s", cmd, err, out)
		}
		if err := hostGo(nil, home).link(cache); err != nil {
			t.Errorf("%s: link = %v, want nothing", cmd, err)
		}
		if there, err := os.ReadDir(outside); err != nil || len(there) > 0 {
			t.Errorf("%s: there is %v outside (%v)", cmd, there, err)
		}
	}
}

// Links to tools follow the host's tools: new ones are added, those of removed ones
// disappear, and files of a program stay.
func TestLinksFollowToolsOfTheHost(t *testing.T) {
	home, cache := t.TempDir(), t.TempDir()
	at, bin := home+"/go/bin/", cache+"/go/bin/"
	g := hostGo(nil, home)
	link := func(want string) {
		t.Helper()
		if err := g.link(cache); err != nil {
			t.Fatal(err)
		}
		all, _ := os.ReadDir(bin)
		var names []string
		for _, e := range all {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("there is %q, want %q", got, want)
		}
	}
	link("")
	if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(at+"a", nil, 0o700), os.WriteFile(at+"b", nil, 0o700)); err != nil {
		t.Fatal(err)
	}
	link("a b")
	if err := errors.Join(os.Remove(at+"a"), os.WriteFile(at+"c", nil, 0o700), os.WriteFile(bin+"own", nil, 0o700), os.Symlink("gone", bin+"their")); err != nil {
		t.Fatal(err)
	}
	link("b c own their")
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	link("own their")
}
