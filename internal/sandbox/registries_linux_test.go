package sandbox

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// behindEnv makes TestRegistries run its programs: it is set where the environment
// names a proxy, as it does in the network of a company.
const behindEnv = "YAYA_TEST_BEHIND"

// Programs that fetch before they run, or that fetch what they were told to, do so by
// the proxy of their sandbox and the one of the company, from the hosts of the profile.
func TestRegistries(t *testing.T) {
	if os.Getenv(behindEnv) == "" {
		registriesBehindProxy(t)
		return
	}
	uvx := onPath(t, "uvx", "../peers/py/.venv/bin")
	for _, c := range []struct {
		name, profile, command string
		files                  map[string]string
		argv                   []string
		want                   string
	}{
		{"npx", "server", "npx", nil, []string{"npx", "-y", "semver@7.7.2", "1.2.3"}, "1.2.3"},
		{"uvx", "server", "uvx", nil, []string{uvx, "--no-python-downloads", "mcp-server-time", "--help"}, "local-timezone"},
		{"npm install", "command", "", map[string]string{"package.json": `{"name":"a","version":"1.0.0"}`}, []string{"sh", "-c", "npm install --no-audit --no-fund ms@2.1.3 && node -p 'require(\"ms\")(\"1m\")'"}, "60000"},
		{"npx pnpm", "command", "", needsMS, []string{"sh", "-c", "npx -y pnpm@10.12.1 install && " + usesMS}, "60000"},
		{"npx yarn", "command", "", needsMS, []string{"sh", "-c", "npx -y yarn@1.22.22 install && " + usesMS}, "60000"},
		{"npx yarn 4", "command", "", needsMS, []string{"sh", "-c", "test -z \"$SSL_CERT_FILE\" || export YARN_HTTPS_CA_FILE_PATH=$SSL_CERT_FILE; export YARN_NODE_LINKER=node-modules; touch yarn.lock; npx -y @yarnpkg/cli-dist@4.9.2 install && " + usesMS}, "60000"},
		{"uv", "command", "", nil, []string{"sh", "-c", "uv venv -q --no-python-downloads v && uv pip install -q --python v six==1.17.0 && v/bin/python -c 'import six; print(six.__version__)'"}, "1.17.0"},
		{"go get", "command", "", map[string]string{"go.mod": "module a\n\ngo 1.24\n", "a.go": "package main\n\nimport \"rsc.io/quote\"\n\nfunc main() { println(quote.Hello()) }\n"}, []string{"sh", "-c", "go get rsc.io/quote@v1.5.2 && go list -m -f '{{.Dir}}' rsc.io/quote"}, "cache/go/pkg/mod/rsc.io/quote@v1.5.2"},
		{"cargo", "command", "", cargoFiles, []string{"sh", "-c", "cargo run -q"}, "42"},
		{"cargo of the host", "check", "", cargoFiles, []string{"sh", "-c", "cargo build -v --locked 2>&1 | grep -q 'Fresh itoa' && cargo run -q --locked && ls -d ~/.cargo/registry/src/*/itoa-1.0.15 && cat ~/.cargo/config.toml && ! touch ~/.cargo/bin/x && ! touch ~/.cargo/config.toml"}, "42"},
		{"another host", "command", "", nil, []string{"/usr/bin/python3", "-c", "import urllib.request as u\ntry:\n  print(u.urlopen('https://example.com/').status)\nexcept Exception as e:\n  print('kept:', e)"}, "kept: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skip(err)
			}
			if c.argv[0] == "sh" {
				program, _, _ := strings.Cut(c.name, " ")
				if out, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput(); err != nil && program != "go" {
					t.Skipf("%s is not there, or not for this user: %v %s", program, err, out)
				}
				if at, err := exec.LookPath(program); err == nil && strings.HasPrefix(at, "/tmp/") {
					t.Skipf("%s: a sandbox has a /tmp of its own", at)
				}
			}
			p := newPlace(t)
			for name, data := range c.files {
				path := filepath.Join(p.ws, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			pol := p.policy(t, c.profile)
			var err error
			if pol.Home, err = os.UserHomeDir(); err != nil {
				t.Skip(err)
			}
			pol.Cache = filepath.Join(p.dir, "cache")
			pol.Net.Allow = append(pol.Net.Allow, RegistryOf(c.command)...)
			var denied []Denial
			pol.Net.Denied = func(d Denial) { denied = append(denied, d) }
			if c.name == "cargo of the host" { // which has fetched it, and then there is no network
				hostCrates(t, p)
				pol.Home = p.home
			}
			got, err := (&Box{Backend: Namespaces, Own: []string{p.own}}).start(t, pol, p.ws, certificates(), c.argv...)
			if err != nil {
				t.Fatal(err)
			}
			if got.code != 0 || !strings.Contains(got.out, c.want) {
				t.Errorf("code %d, output %q, want %q; denied: %+v", got.code, got.out, c.want, denied)
			}
			if c.name == "another host" && (len(denied) != 1 || denied[0].Host != "example.com" || strings.Contains(got.out, "200")) {
				t.Errorf("denied: %+v, output %q; want example.com", denied, got.out)
			}
		})
	}
}

// needsMS is a package that needs another one, and usesMS uses that.
var needsMS = map[string]string{"package.json": `{"name":"a","version":"1.0.0","dependencies":{"ms":"2.1.3"}}`}

const usesMS = "node -p 'require(\"ms\")(\"1m\")' && ls -A"

// cargoFiles are a program with a dependency.
var cargoFiles = map[string]string{"Cargo.toml": "[package]\nname=\"a\"\nversion=\"0.1.0\"\nedition=\"2021\"\n[dependencies]\nitoa=\"=1.0.15\"\n", "src/main.rs": "fn main(){println!(\"{}\", itoa::Buffer::new().format(42))}\n"}

// hostCrates has Cargo outside the sandbox fetch and build the program.
func hostCrates(t *testing.T, p *place) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("RUSTUP_HOME", home+"/.rustup")
	cargo := p.home + "/.cargo"
	if err := errors.Join(os.MkdirAll(cargo+"/bin", 0o700), os.WriteFile(cargo+"/config.toml", []byte("[net]\nretry = 1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "cargo", "build", "-q")
	cmd.Dir, cmd.Env = p.ws, append(os.Environ(), "CARGO_HOME="+cargo)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cargo build outside: %v %s", err, out)
	}
}

// certificates are the variables that name certificates on this machine.
func certificates() []string {
	var env []string
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO", "REQUESTS_CA_BUNDLE", "RUSTUP_HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// onPath finds a program, including those in a folder of the tests.
func onPath(t *testing.T, name, folder string) string {
	t.Helper()
	dir, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		t.Setenv("PATH", os.Getenv("PATH")+":"+dir)
		return filepath.Join(dir, name)
	}
	return name
}

// registriesBehindProxy runs the test again with a proxy in its environment.
func registriesBehindProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("it fetches packages")
	}
	if _, err := (&Box{Backend: Namespaces}).choose(Probe()); err != nil {
		t.Skip(err)
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(RegistryOf("npx")[0], "443"), 5*time.Second)
	if err != nil {
		t.Skipf("there is no registry: %v", err)
	}
	_ = conn.Close()
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up, err := net.DialTimeout("tcp", r.Host, 20*time.Second)
		if r.Method != http.MethodConnect || err != nil {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		defer up.Close()
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err == nil {
			relay(conn, buf.Reader, up, idleTunnel)
		}
	}))
	defer gate.Close()
	cmd := exec.CommandContext(t.Context(), testBinary(t), "-test.run", "^TestRegistries$", "-test.v")
	cmd.Env = append(os.Environ(), behindEnv+"=1", "HTTPS_PROXY="+gate.URL, "NO_PROXY=")
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Errorf("TestRegistries behind a proxy = %v, want no error", err)
	}
}
