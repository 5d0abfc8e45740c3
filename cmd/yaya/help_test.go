package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
)

// Help fits a terminal, but for examples, which are to be pasted.
func TestHelpFitsATerminal(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		var out strings.Builder
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		help := strings.Replace(out.String(), c.Example, "", 1)
		if !strings.Contains(help, "Usage:\n  yaya") {
			t.Errorf("%s: got %q, want its usage", c.CommandPath(), help)
		}
		for line := range strings.Lines(help) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRoot())
}

// Mistakes on the command line are wrong usage, in yaya's words.
func TestMistakesOfUsage(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		name, args, want string
	}{
		{"an unknown command", "nope", `unknown command "yaya nope"`},
		{"below another", "mcp nope", `unknown command "yaya mcp nope"`},
		{"nearly one", "mcp lst", "did you mean"},
		{"a word is missing", "mcp get", "missing argument (usage: yaya mcp get NAME"},
		{"a word too many", "mcp get a b", `unexpected argument "b"`},
		{"an unknown flag", "mcp list --nope", "unknown flag --nope"},
		{"an unknown letter", "mcp list -x", "unknown flag -x"},
		{"a negative number", "config set traffic.days -5", "unknown flag -5; for a negative number, put -- before the arguments"},
		{"a negative number as an argument", "config set -- traffic.days -5", "traffic.days must be a whole number from 0 to 36500, not -5"},
		{"a flag without its value", "mcp logs x --limit", "flag --limit needs a value"},
		{"a flag with another value", "mcp logs x -n a", `flag --limit takes a value of type int, not "a"`},
		{"files of servers, for add", "mcp add --mcp-config other.json x true", "--mcp-config is for the commands that only read a file of servers"},
		{"files of servers, for add, before it", "mcp --mcp-config other.json add x true", "omit the flag, or edit other.json"},
		{"files of servers, for add-json", `mcp add-json x {"command":"true"} --mcp-config other.json`, "--mcp-config is for"},
		{"files of servers, for allow", "mcp allow x --host a.example --mcp-config other.json", "--mcp-config is for"},
		{"files of servers, for approve", "mcp approve --mcp-config other.json", "--mcp-config is for"},
		{"files of servers, for disable", "mcp disable x --mcp-config other.json", "--mcp-config is for"},
		{"files of servers, for edit", "mcp edit x --mcp-config=other.json", "--mcp-config is for"},
		{"files of servers, for enable", "mcp enable x --mcp-config other.json", "--mcp-config is for"},
		{"files of servers, for import", "mcp import --mcp-config other.json", "--mcp-config is for"},
		{"files of servers, for logs", "mcp logs x --mcp-config other.json", "--mcp-config is for"},
		{"files of servers, for remove", "mcp remove x --mcp-config other.json", "--mcp-config is for"},
		{"files of servers, for restart", "mcp restart x --mcp-config other.json", "--mcp-config is for"},
		{"an unknown flag of add", "mcp add --nope x y", "unknown flag --nope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, err := b.run(strings.Fields(c.args)...); exitCode(err) != 2 || !strings.Contains(out, c.want) {
				t.Errorf("yaya %s: got %v, %s; want exit code 2 and %q", c.args, err, out, c.want)
			}
		})
	}
}

// The version says how to find the program's sources: its number, its commit, Go and the system.
func TestVersion(t *testing.T) {
	b := newBox(t)
	out := b.must("version")
	if got := b.must("--version"); got != out {
		t.Errorf("yaya --version says %q, and yaya version %q", got, out)
	}
	if want := runtime.GOOS + "/" + runtime.GOARCH + " " + runtime.Version(); !strings.HasPrefix(out, "yaya "+daemon.Version()) || !strings.Contains(out, want) {
		t.Errorf("yaya version says %q, want the version and %q", out, want)
	}
	bin := filepath.Join(b.dir, "stamped")
	stamp := func(name, value string) string { return " -X github.com/yaya-ai/yaya/daemon." + name + "=" + value }
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-w"+stamp("described", "v9.8.7")+stamp("commit", "0123abcd")+stamp("committed", "2026-01-02T03:04:05Z"), "-o", bin, "github.com/yaya-ai/yaya/cmd/yaya")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v, %s", err, said)
	}
	said, err := exec.CommandContext(t.Context(), bin, "version").Output()
	if want := "yaya 9.8.7 " + runtime.GOOS + "/" + runtime.GOARCH + " " + runtime.Version() + "\ncommit 0123abcd of 2026-01-02T03:04:05Z\n"; err != nil || string(said) != want {
		t.Errorf("yaya version of a stamped build says %q, %v, want %q", said, err, want)
	}
}

// A secret on the command line is refused, with what to do, and without the value.
func TestSecretsOnTheCommandLineAreRefused(t *testing.T) {
	b := newBox(t)
	b.must("provider", "add", "one", "--base-url", "http://127.0.0.1:1/v1", "--model", "m")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"a key", []string{"config", "set", "providers.one.api_key", "sk-typed-0123"}},
		{"a number", []string{"config", "set", "plugin.x.password", "0123"}},
		{"a member", []string{"config", "set", "plugin.x.login", `{"user":"u","token":"sk-typed-0123"}`}},
		{"a list", []string{"config", "set", "plugin.x.logins", `[{"secret":["sk-typed-0123"]}]`}},
		{"of a new provider", []string{"provider", "add", "two", "--set", "api_key=sk-typed-0123"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, err := b.run(c.args...); exitCode(err) != 2 || !strings.Contains(out, "${secret:NAME}") || strings.Contains(out, "0123") {
				t.Errorf("yaya %s: got %v, %s; want exit code 2 and the remedy, without the value", c.args, err, out)
			}
		})
	}
	b.must("config", "set", "plugin.x.login", `{"user":"u","token":"${secret:t}","password":""}`)
	b.must("config", "set", "providers.one.api_key", "${secret:t}")
	if out, err := b.typed("2m\n", "config", "set", "approval.timeout", "-"); err != nil || !strings.Contains(b.must("config", "get", "approval.timeout"), "2m") {
		t.Errorf("yaya config set approval.timeout -: %v, %s; want 2m", err, out)
	}
}

// Commands that read files of servers read those that are named, beside a daemon, too. The help
// of a command shows the flag if the command takes it.
func TestFilesOfServersAreRead(t *testing.T) {
	b := newBox(t)
	file := filepath.Join(b.dir, "other.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"theirs":{"command":"/nonexistent/x","args":["a"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("mcp", "add", "own", "true")
	for _, running := range []bool{false, true} {
		if running {
			b.serve()
		}
		if out := b.must("mcp", "get", "theirs", "--mcp-config", file); !strings.Contains(out, "/nonexistent/x a") || !strings.Contains(out, "this command starts no server") {
			t.Errorf("running %v: yaya mcp get theirs: got %s; want its command line and that it is not started", running, out)
		}
		if out, err := b.run("mcp", "get", "own", "--mcp-config", file); err == nil || !strings.Contains(out, `there is no server "own" in `+file) {
			t.Errorf("running %v: yaya mcp get own: got %v, %s; want that it is not in the file", running, err, out)
		}
	}
	for command, want := range map[string]bool{"get": true, "list": true, "add": false, "restart": false} {
		if help := b.must("mcp", command, "--help"); strings.Contains(help, "--mcp-config") != want {
			t.Errorf("yaya mcp %s --help: got %s; want --mcp-config: %v", command, help, want)
		}
	}
}

// A run whose calls are refused because nobody is there to ask says so at its end.
func TestRunSaysWhatWasRefused(t *testing.T) {
	b := newBox(t)
	command, _ := b.recorded("fake")
	b.must(append([]string{"mcp", "add", "fake"}, command...)...)
	for flags, why := range map[string]string{"": daemon.NobodyAsked, "--json": daemon.NobodyAsked, "--approve never": daemon.NeverAsked, "--approve never --json": daemon.NeverAsked} {
		cmd := exec.CommandContext(t.Context(), b.bin, b.args(append([]string{"run", "/tool fake__t {}"}, strings.Fields(flags)...)...)...) //nolint:forbidigo // it ends by itself
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "1 call was refused: "+why) {
			t.Errorf("yaya run %s: got %v, %s; want what was refused", flags, err, out)
		}
	}
}
