package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A back end that makes no sandbox here is refused, with a daemon and without, and
// nothing is changed.
func TestBackEndOfElsewhereIsNotSet(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	check := func(how string) {
		t.Helper()
		out, err := b.run("config", "set", "sandbox.backend", "seatbelt")
		if want := `there is no sandbox back end "seatbelt" here; use one of auto, namespaces, bwrap, landlock, off`; exitCode(err) != 2 || !strings.Contains(out, want) {
			t.Errorf("%s: got %v, %s; want exit code 2 and %q", how, err, out, want)
		}
		if out := b.must("config", "get", "sandbox.backend"); out != "\"auto\"\n" {
			t.Errorf("%s: it is %s, want auto", how, out)
		}
	}
	check("alone")
	b.serve()
	check("daemon")
}

// One that stands in the file or in the environment is named at the start, with
// the remedy for where it stands.
func TestBackEndOfElsewhereIsToldAtTheStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, env, fix string }{
		{"in the file", "[sandbox]\nbackend = \"seatbelt\"\n", "", "yaya config set sandbox.backend auto"},
		{"in the environment", "", "YAYA_SANDBOX__BACKEND=seatbelt", "unset YAYA_SANDBOX__BACKEND"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			if err := os.MkdirAll(filepath.Join(b.dir, "c"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.dir, "c", "config.toml"), []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.env != "" {
				b.env = []string{tt.env}
			}
			daemon := b.daemon("serve", "--listen", b.addr)
			waitFor(t, b.addr)
			for _, want := range []string{`there is no sandbox back end`, tt.fix} {
				eventually.True(t, "yaya serve says "+want, func() bool { return strings.Contains(fmt.Sprint(daemon.said), want) })
			}
			// So does what runs in no daemon.
			if out, err := b.run("sandbox", "run", "--", "true"); exitCode(err) != 1 || !strings.Contains(out, tt.fix) {
				t.Errorf("yaya sandbox run: got %v, %s; want %q", err, out, tt.fix)
			}
		})
	}
}

// Where a variable decides the back end, sandbox run says so.
func TestSandboxRunNamesTheVariable(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env = []string{"YAYA_SANDBOX__BACKEND=off"}
	out, err := b.run("sandbox", "run", "--", "true")
	if exitCode(err) != 1 || !strings.Contains(out, "unset YAYA_SANDBOX__BACKEND") || strings.Contains(out, "config set") {
		t.Errorf("got %v, %s; want the variable that decides", err, out)
	}
}

// A setting that keeps servers from starting is set, and says which they are, and
// how to take it back.
func TestSettingThatStopsServersSaysSo(t *testing.T) {
	t.Parallel()
	for _, daemon := range []bool{false, true} {
		t.Run(fmt.Sprintf("daemon %v", daemon), func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			if err := os.MkdirAll(filepath.Join(b.dir, "c"), 0o700); err != nil {
				t.Fatal(err)
			}
			b.edit("mcp.json", `{"mcpServers":{
				"free":{"command":"sleep","args":["60"],"sandbox":{"profile":"off"}},
				"own":{"command":"sleep","args":["60"]},
				"bounded":{"command":"sleep","args":["60"],"sandbox":{"hosts":["example.com"]}},
				"away":{"command":"sleep","args":["60"],"sandbox":{"profile":"off"},"disabled":true}}}`)
			if daemon {
				b.daemon("serve", "--listen", b.addr) // the servers never get ready
				waitFor(t, b.addr)
			}
			for _, tt := range []struct {
				key, value string
				want, not  []string
			}{
				{"sandbox.mode", "require", []string{"server free", "sandbox.mode is require", "to revert the change: yaya config unset sandbox.mode"}, []string{"server own", "away"}},
				{"sandbox.mode", "prefer", nil, []string{"server"}},
				{"sandbox.backend", "landlock", []string{"server bounded", "hosts", "to revert the change: yaya config unset sandbox.backend"}, []string{"server own", "server free", "away"}},
				{"sandbox.backend", "off", []string{"server bounded", "checks of agents' work", "to revert the change: yaya config set sandbox.backend landlock"}, []string{"server own", "server free", "agents' commands"}},
			} {
				cmd := exec.CommandContext(t.Context(), b.bin, b.args("config", "set", tt.key, tt.value)...)
				cmd.Env = b.environ()
				raw, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("yaya config set %s %s = %v, want no error\n%s", tt.key, tt.value, err, raw)
				}
				out := string(raw)
				for _, want := range tt.want {
					if !strings.Contains(out, want) {
						t.Errorf("%s %s: got %q, want %q", tt.key, tt.value, out, want)
					}
				}
				for _, not := range tt.not {
					if strings.Contains(out, not) {
						t.Errorf("%s %s: got %q, want nothing of %q", tt.key, tt.value, out, not)
					}
				}
			}
		})
	}
}

// A value that a variable overrides names the variable, for every key.
func TestSetUnderAVariableNamesIt(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("provider", "add", "two", "--plugin", "llm-echo")
	for _, args := range [][]string{{"config", "set", "provider", "two"}, {"provider", "use", "two"}} {
		cmd := exec.CommandContext(t.Context(), b.bin, b.args(args...)...)
		cmd.Env = append(b.environ(), "YAYA_PROVIDER=llm-echo")
		out, err := cmd.CombinedOutput()
		if want := "has no effect: the environment overrides it; unset YAYA_PROVIDER and restart yaya"; err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: got %v, %s; want %q", args, err, out, want)
		}
	}
}
