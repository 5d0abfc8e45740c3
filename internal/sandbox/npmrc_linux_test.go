package sandbox

import (
	"io"
	"os"
	"strings"
	"testing"
)

// The settings of npm are there without the secrets: Yarn ends at a file that it cannot
// read, and npm without the registry of its user installs something else.
func TestNpmSettings(t *testing.T) {
	const settings = "registry=https://npm.corp.example/\n@corp:registry = https://x.example/\n@other:registry=https://user:canary@x.example/\n//npm.corp.example/:_authToken=canary\n" +
		"_auth=canary\n_password=canary\nemail=canary\nhttps-proxy=http://u:canary@p/\ngit=/canary\nscript-shell=/canary\nomit=${CANARY} canary\nignore-scripts=true\n; canary\ncanary\n"
	const want = "registry=https://npm.corp.example/\n@corp:registry=https://x.example/\n; yaya hides the registry of this scope, whose address may hold a secret\n@other:registry=" + npmNowhere + "\nignore-scripts=true\n"
	for _, backend := range []string{Namespaces, Bwrap} {
		b := needs(t, backend)
		p := newPlace(t)
		b.Own = []string{p.own}
		if err := os.WriteFile(p.home+"/.npmrc", []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"command": want, "check": want, "server": ""} {
			pol := p.policy(t, name)
			pol.Cache = p.dir + "/cache-" + name
			got, err := b.start(t, pol, p.ws, nil, "sh", "-c", `cat ~/.npmrc 2>/dev/null; echo x >>~/.npmrc`)
			data, rerr := os.ReadFile(p.home + "/.npmrc")
			if err != nil || rerr != nil || string(data) != settings || !strings.HasPrefix(got.out, want) || strings.Contains(got.out, "canary") {
				t.Errorf("%s/%s: got %q, %v; want %q", backend, name, got.out, err, want)
			}
		}
	}
}

// Mounted files of sandboxes are not overwritten: running sandboxes keep their content.
// An unchanged file stays the same file.
func TestNpmSettingsAreReplaced(t *testing.T) {
	name := t.TempDir() + "/npmrc"
	write := func(text string) os.FileInfo {
		t.Helper()
		if err := store(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write("a=1\n")
	mounted, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	if again := write("a=1\n"); !os.SameFile(first, again) {
		t.Error("the same content made another file")
	}
	write("b=2\n")
	now, rerr := os.ReadFile(name)
	if was, err := io.ReadAll(mounted); err != nil || rerr != nil || string(was) != "a=1\n" || string(now) != "b=2\n" {
		t.Errorf("mounted %q, %v; now %q, %v; want what each was", was, err, now, rerr)
	}
}
