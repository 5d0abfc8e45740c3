package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// An invalid script is refused when it is set, for all instances and for one.
func TestScriptIsCheckedWhenItIsSet(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("provider", "add", "scripted", "--plugin", "llm-echo")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"config", "set", "plugin.llm_echo.script", "/tmp/script.json"}, "not the name of a file"},
		{[]string{"config", "set", "plugin.llm_echo.script", `{"steps":[{"txt":"x"}]}`}, `unknown field "txt"`},
		{[]string{"config", "set", "plugin.llm_echo.script", `[1]`}, "cannot be of type array"},
		{[]string{"config", "set", "plugin.llm_echo.script.steps", `[]`}, "plugin.llm_echo.script is a single value"},
		{[]string{"config", "set", "providers.scripted.script", `{"scenarios":[{"match":"("}]}`}, "scenario 1"},
		{[]string{"provider", "add", "another", "--plugin", "llm-echo", "--set", "script=nope"}, "not the name of a file"},
	} {
		if out, err := b.run(tt.args...); exitCode(err) != 2 || !strings.Contains(out, tt.want) {
			t.Errorf("%v: got %v, %s; want exit code 2 and %q", tt.args, err, out, tt.want)
		}
	}
	b.must("config", "set", "providers.other.script", "5") // another plugin's
}

// One that stands in the file is reported at the start and by the doctor; a text with
// JSON in it works there.
func TestScriptInTheFile(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if err := os.MkdirAll(filepath.Join(b.dir, "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(toml string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.dir, "c", "config.toml"), []byte(toml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("provider = \"llm-echo\"\n[plugin.llm_echo]\nscript = '''{\"steps\": [{\"text\": \"from the file\"}]}'''\n")
	if out := b.must("run", "hello"); !strings.Contains(out, "from the file") {
		t.Errorf("got %q, want what the script says", out)
	}
	write("[plugin.llm_echo]\nscript = \"script.json\"\n")
	const want = "plugin.llm_echo.script: script: "
	if out, err := b.run("doctor"); exitCode(err) != 1 || !strings.Contains(out, want) {
		t.Errorf("yaya doctor: got %v, %s; want %q", err, out, want)
	}
	daemon := b.serve()
	eventually.True(t, "yaya serve says so", func() bool { return strings.Contains(fmt.Sprint(daemon.Stdout), want) })
}
