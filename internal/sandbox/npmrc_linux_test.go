package sandbox

import (
	"os"
	"strings"
	"testing"
)

// The settings of npm are there without the secrets: Yarn ends at a file that it cannot
// read, and npm without the registry of its user installs something else.
func TestNpmSettings(t *testing.T) {
	const settings = "registry=https://npm.corp.example/\n@corp:registry = https://x.example/\n@other:registry=https://user:canary@x.example/\n//npm.corp.example/:_authToken=canary\n" +
		"_auth=canary\n_password=canary\nemail=canary\nhttps-proxy=http://u:canary@p/\ngit=/canary\nscript-shell=/canary\nomit=${CANARY} canary\nignore-scripts=true\n; canary\ncanary\n"
	const want = "registry=https://npm.corp.example/\n@corp:registry=https://x.example/\nignore-scripts=true\n"
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
