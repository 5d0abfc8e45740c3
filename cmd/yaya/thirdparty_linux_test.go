package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// pythonPlugin is a plugin with one tool in plain Python.
const pythonPlugin = `import json, os, sys
TOOL = {"name": "forecast", "description": "Forecasts.", "kind": "read",
        "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m or "method" not in m:
        continue
    reply = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        reply["result"] = {"abi": 1, "name": "weather", "version": "1.0.0", "category": "tool", "tools": [TOOL]}
    elif m["method"] == "tool.call" and m["params"]["name"] == "forecast":
        reply["result"] = {"ok": True, "display": [{"kind": "text", "text": "RAIN in " + m["params"]["args"]["place"]}]}
    elif m["method"] in ("event", "shutdown"):
        reply["result"] = {}
    else:
        reply["error"] = {"code": -32601, "message": "unknown method or tool"}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
`

// weather makes the folder of a plugin.
func (b *box) weather() string {
	b.t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		b.t.Skip("python3 is not here")
	}
	dir := filepath.Join(b.dir, "weather")
	toml := "name = \"weather\"\nversion = \"1.0.0\"\ncategory = \"tool\"\nrun = [\"python3\", \"main.py\"]\n"
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "plugin.toml"), []byte(toml), 0o600), os.WriteFile(filepath.Join(dir, "main.py"), []byte(pythonPlugin), 0o600)); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

const forecast = `/tool forecast {"place":"Oslo"}`

// Y-102 to Y-104: a plugin of somebody else is shown and asked about, and its tool is called
// in a turn; changed files do not run until they are accepted.
func TestThirdPartyPlugin(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	from := b.weather()
	if out := b.must("plugin", "test", from); strings.Contains(out, "FAIL") {
		t.Errorf("plugin test says\n%swant no failures", out)
	}
	b.rewrite(filepath.Join(from, "main.py"), "import json", "import no_such_module, json")
	said, errOut, code := b.in(b.dir, "plugin", "test", from)
	if want := "      initialize: the program exited with status 1, and said on standard error:\n      Traceback"; code != 1 || !strings.Contains(said, want) || !strings.Contains(said, "\n      ModuleNotFoundError: ") {
		t.Errorf("plugin test of a program that ends: %d\n%s%s\nwant %q, and what it said in lines", code, said, errOut, want)
	}
	if _, said, _ := b.in(b.dir, "plugin", "install", "--yes", from); !strings.HasPrefix(said, "yaya: weather 1.0.0 is installed, and does not start: ") || !strings.Contains(said, "it last said: ModuleNotFoundError: ") {
		t.Errorf("plugin install of a program that ends: %s, want that it is installed, and why it does not start", said)
	}
	b.must("plugin", "remove", "weather")
	b.rewrite(filepath.Join(from, "main.py"), "import no_such_module, json", "import json")
	archive := filepath.Join(b.dir, "weather.tar.gz")
	if out, err := exec.Command("tar", "czf", archive, "-C", b.dir, "weather").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	if out := b.must("plugin", "test", archive); strings.Contains(out, "FAIL") || !strings.Contains(out, "exits when") {
		t.Errorf("plugin test of an archive says\n%swant all checks without a failure", out)
	}
	out := b.unasked("plugin", "install", from)
	for _, want := range []string{"weather 1.0.0", from, "sha256:", "category     tool", "python3 main.py", "permissions  none", "nothing was installed"} {
		if !strings.Contains(out, want) {
			t.Errorf("plugin install says\n%swant %q", out, want)
		}
	}
	b.must("plugin", "install", "--yes", from)
	if out := b.must("plugin", "list"); !strings.Contains(out, "weather") {
		t.Errorf("plugin list says\n%swant weather", out)
	}
	if out := b.must("run", forecast); !strings.Contains(out, "RAIN in Oslo") {
		t.Errorf("run says\n%swant the plugin's answer", out)
	}
	main := filepath.Join(b.dir, "d", "plugins", "weather", "1.0.0", "main.py")
	if err := os.WriteFile(main, []byte(strings.ReplaceAll(pythonPlugin, "RAIN", "SNOW")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.must("plugin", "list"); !strings.Contains(out, "yaya plugin accept weather") {
		t.Errorf("plugin list says\n%swant the command that accepts the files", out)
	}
	if out := b.must("plugin", "accept", "--yes", "weather"); !strings.Contains(out, "  changes      changed: main.py\n") {
		t.Errorf("plugin accept says\n%swant which file has changed", out)
	}
	if out := b.must("run", forecast); !strings.Contains(out, "SNOW in Oslo") {
		t.Errorf("run says\n%swant the answer of the accepted files", out)
	}
	b.must("plugin", "remove", "weather")
	if left, err := os.ReadDir(filepath.Join(b.dir, "d", "plugins", "weather")); !os.IsNotExist(err) {
		t.Errorf("a removed plugin leaves %v, %v, want nothing", left, err)
	}
	if out := b.must("plugin", "list"); strings.Contains(out, "weather") {
		t.Errorf("plugin list says\n%swant no weather", out)
	}
}

// DESIGN 14: the daemon loads an editable plugin again when its files change.
func TestEditablePlugin(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	from := b.weather()
	b.serve()
	b.must("plugin", "install", "--yes", "--editable", from)
	if out := b.must("run", forecast); !strings.Contains(out, "RAIN in Oslo") {
		t.Errorf("run says\n%swant the plugin's answer", out)
	}
	if err := os.WriteFile(filepath.Join(from, "main.py"), []byte(strings.ReplaceAll(pythonPlugin, "RAIN", "SNOW")), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually.True(t, "the changed plugin answers", func() bool { return strings.Contains(b.must("run", forecast), "SNOW in Oslo") })
	t.Logf("it took %v, with the command", time.Since(began))
	// A description that cannot be read is passed over, and the next one is taken.
	toml := filepath.Join(from, "plugin.toml")
	good, err := os.ReadFile(toml)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(toml, []byte("nonsense = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.must("run", forecast); !strings.Contains(out, "SNOW in Oslo") {
		t.Errorf("run says\n%swant the old plugin's answer", out)
	}
	if err := errors.Join(os.WriteFile(toml, good, 0o600), os.WriteFile(filepath.Join(from, "main.py"), []byte(strings.ReplaceAll(pythonPlugin, "RAIN", "HAIL")), 0o600)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the corrected plugin answers", func() bool { return strings.Contains(b.must("run", forecast), "HAIL in Oslo") })
}
