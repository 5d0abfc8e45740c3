package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// GF-6: a list that is not JSON is refused with one that is, which can be set as it stands.
func TestListsAreShownInJSON(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, key := range []string{"approval.rules", "workspace.roots", "sandbox.command.hosts", "sandbox.command.write", "wire.export", "approval.groups.team"} {
		out, err := b.run("config", "set", key, `[{tool = "shell", decision = "deny"}]`)
		example := regexp.MustCompile(`such as (\[.*\]), not`).FindStringSubmatch(out)
		if exitCode(err) != 2 || example == nil {
			t.Errorf("%s: got %v, %s; want exit code 2 and an example in JSON", key, err, out)
			continue
		}
		if out, err := b.run("config", "set", key, example[1]); err != nil {
			t.Errorf("%s: the example %s is refused: %s", key, example[1], out)
		}
	}
}

// GF-6: a reference to a secret that is not stored gets a warning, with a daemon and without.
func TestSecretsThatAreNotStored(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	set := func(name string) string {
		cmd := exec.CommandContext(t.Context(), b.bin, b.args("config", "set", "providers.one.api_key", "${secret:"+name+"}")...)
		cmd.Env = b.environ()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("config set: %v\n%s", err, out)
		}
		return string(out)
	}
	check := func(how string) {
		t.Helper()
		if out := set("nope"); !strings.Contains(out, "the secret nope is not stored: yaya secret set nope") {
			t.Errorf("%s: got %q, want that it is not stored and the remedy", how, out)
		}
		b.secret("there-"+how, "canary-value-0123456789")
		if out := set("there-" + how); strings.Contains(out, "not stored") {
			t.Errorf("%s: got %q about a secret that is stored", how, out)
		}
	}
	b.must("config", "set", "providers.one.plugin", "llm-openai")
	check("alone")
	b.serve()
	check("daemon")
}
