package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Real programs work in the profile that is meant for them, without a setting.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	chromium := "chromium"
	for _, name := range []string{"chromium-browser", "google-chrome"} {
		if _, err := exec.LookPath(chromium); err != nil {
			chromium = name
		}
	}
	headless := []string{chromium, "--headless", "--disable-gpu", "--user-data-dir=profile", "--dump-dom", "data:text/html,<p>it works</p>"}
	if os.Geteuid() == 0 { // Chromium refuses its own sandbox as root, here and elsewhere
		headless = append(headless[:1:1], append([]string{"--no-sandbox"}, headless[1:]...)...)
	}
	for _, c := range []struct {
		name, profile string
		files         map[string]string
		argv          []string
		want          string
	}{
		{"sh", "plugin", nil, []string{"sh", "-c", "echo it works | cat"}, "it works"},
		{"sh job", "check", nil, []string{"sh", "-c", "sleep 0 & wait; (exit 3); echo $?"}, "3"},
		{"node", "server", map[string]string{"a.js": `require("child_process").execFile("node", ["-p", "6*7"], (e, out) => console.log(e ?? out))`}, []string{"node", "a.js"}, "42"},
		{"node loopback", "check", map[string]string{"a.js": `const h=require("http");const s=h.createServer((q,r)=>r.end("it works")).listen(0,"127.0.0.1",()=>h.get({port:s.address().port,host:"127.0.0.1"},r=>{r.pipe(process.stdout);r.on("end",()=>s.close())}))`}, []string{"node", "a.js"}, "it works"},
		{"npm test", "check", map[string]string{"package.json": `{"name":"a","version":"1.0.0","scripts":{"test":"node -p 6*7"}}`}, []string{"npm", "test"}, "42"},
		{"npx", "command", map[string]string{"node_modules/.bin/hello": "#!/usr/bin/env node\nconsole.log('it works')\n", "package.json": `{"name":"a"}`}, []string{"npx", "--offline", "hello"}, "it works"},
		{"python", "server", nil, []string{"/usr/bin/python3", "-c", "import multiprocessing, tempfile, ssl; multiprocessing.Lock(); tempfile.mkdtemp(); print('it', 'works')"}, "it works"},
		{"git commit", "command", nil, []string{"sh", "-c", "git add -A && git -c user.name=a -c user.email=a@example.com commit -q -m x --allow-empty && git log --format=%s && git status --short"}, "x"},
		{"go build", "check", map[string]string{"go.mod": "module a\n\ngo 1.24\n", "a.go": "package main\n\nfunc main() { println(\"it works\") }\n"}, []string{"sh", "-c", "go build -o a . && ./a"}, "it works"},
		{"make", "check", map[string]string{"Makefile": "all: a\n\t@cat a\na:\n\t@echo it works > a\n"}, []string{"make", "-s", "-j4"}, "it works"},
		{"gcc", "check", map[string]string{"a.c": "#include <stdio.h>\nint main(void){puts(\"it works\");}\n"}, []string{"sh", "-c", "gcc -o a a.c && ./a"}, "it works"},
		{"cargo", "check", map[string]string{"Cargo.toml": "[package]\nname=\"a\"\nversion=\"0.1.0\"\nedition=\"2021\"\n", "src/main.rs": "fn main(){println!(\"it works\")}\n"}, []string{"cargo", "run", "-q"}, "it works"},
		{"chromium", "browser", nil, headless, "it works"},
	} {
		for _, backend := range []string{Namespaces, Bwrap} {
			t.Run(backend+"/"+c.name, func(t *testing.T) {
				b := needs(t, backend)
				if _, err := exec.LookPath(c.argv[0]); err != nil {
					t.Skip(err)
				}
				if c.name == "cargo" {
					if out, err := exec.CommandContext(t.Context(), "cargo", "--version").CombinedOutput(); err != nil {
						t.Skipf("it is not installed for this user: %v %s", err, out)
					}
				}
				p := newPlace(t)
				if err := errors.Join(os.RemoveAll(p.ws+"/.git"), os.Remove(p.ws+"/fifo")); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", p.ws).CombinedOutput(); err != nil {
					t.Fatalf("git init = %v, want no error: %s", err, out)
				}
				for name, data := range c.files {
					path := filepath.Join(p.ws, name)
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o700)); err != nil {
						t.Fatal(err)
					}
				}
				pol := p.policy(t, c.profile)
				pol.Home = home
				pol.Cache = filepath.Join(p.dir, "cache")
				b.Own = []string{p.own}
				got, err := b.start(t, pol, p.ws, nil, c.argv...)
				if err != nil {
					t.Fatal(err)
				}
				if got.code != 0 || !strings.Contains(got.out, c.want) {
					t.Errorf("%s in profile %s: code %d, output %q, want %q", c.name, c.profile, got.code, got.out, c.want)
				}
			})
		}
	}
}
