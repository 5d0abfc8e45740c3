package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/config"
)

func all(*config.Store, []config.Change) error { return nil }

// USE-2: another content of the file holds at once, is announced, and says what decides
// instead where something else does.
func TestReloadFile(t *testing.T) {
	w := open(t, t.TempDir(), config.Options{
		File: []byte("provider = \"old\"\n[loop]\nmax_iterations = 3\n[compaction]\nthreshold = 10\n"), FileName: "config.toml",
		Env: []string{"YAYA_COMPACTION__THRESHOLD=11", "YAYA_PLUGIN__MY_TOOL__SIZE=7"},
	})
	if err := w.Set("strategy", []byte(`"coder"`)); err != nil {
		t.Fatal(err)
	}
	changes, err := w.ReloadFile("config.toml", []byte("strategy = \"react\"\nprovider = \"new\"\n[compaction]\nthreshold = 12\n[plugin.my-tool]\nsize = 6\n"), func(next *config.Store, changes []config.Change) error {
		if next.Text("provider") != "new" || w.Text("provider") != "old" || len(changes) != 5 {
			t.Errorf("asked about %+v with the provider %q while %q holds", changes, next.Text("provider"), w.Text("provider"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "[{compaction.threshold true true environment} {loop.max_iterations true false } {plugin.my-tool.size false true environment} {provider true true } {strategy false true set}]"
	if got := fmt.Sprint(changes); got != want {
		t.Errorf("the changes are %s, want %s", got, want)
	}
	for key, want := range map[string]string{"provider": `"new"`, "loop.max_iterations": "500", "compaction.threshold": "11", "strategy": `"coder"`, "plugin.my-tool.size": "7"} {
		if got, _, _ := w.Get(key); string(got) != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if changes, err := w.ReloadFile("config.toml", []byte("strategy = \"react\"\nprovider = \"new\" # again\n[compaction]\nthreshold = 12\n[plugin.my-tool]\nsize = 6\n"), all); err != nil || len(changes) != 0 {
		t.Errorf("the same in other words: got %v, %v", changes, err)
	}
	if got := fmt.Sprint(w.updates(t)); !strings.Contains(got, "provider") || !strings.Contains(got, "loop.max_iterations") || strings.Count(got, "provider") != 1 {
		t.Errorf("announced: %v", got)
	}
}

// USE-2: a file that is not valid, or not accepted, changes nothing, and says where.
func TestReloadFileRefused(t *testing.T) {
	w := open(t, t.TempDir(), config.Options{File: []byte("provider = \"old\"\n"), FileName: "config.toml"})
	refuse := errors.New("not this one")
	for name, c := range map[string]struct {
		content, want string
		accept        func(*config.Store, []config.Change) error
	}{
		"half a file":    {"provider = \"new\"\n[loop\n", "config.toml:2", all},
		"a wrong value":  {"provider = \"new\"\n\n[loop]\nmax_iterations = \"x\"\n", "config.toml:4", all},
		"an unknown key": {"provider = \"new\"\nprovidr = \"x\"\n", "config.toml:2", all},
		"too large":      {strings.Repeat("# x\n", config.MaxFile/4+1), "at most", all},
		"not accepted":   {"provider = \"new\"\n", "not this one", func(*config.Store, []config.Change) error { return refuse }},
	} {
		changes, err := w.ReloadFile("config.toml", []byte(c.content), c.accept)
		if err == nil || !strings.Contains(err.Error(), c.want) || changes != nil || w.Text("provider") != "old" {
			t.Errorf("%s: got %v, %v and the provider %q, want %q", name, changes, err, w.Text("provider"), c.want)
		}
	}
}

func TestNeedsRestart(t *testing.T) {
	for key, want := range map[string]bool{"auth.issuer": true, "session.reap_interval": true, "plugin.llm_echo.enabled": true, "provider": false, "approval.rules": false, "plugin.llm_echo.script": false} {
		if got := config.NeedsRestart(key); got != want {
			t.Errorf("NeedsRestart(%q) = %v, want %v", key, got, want)
		}
	}
}

// A setting that is read at the start waits for the next one as long as it differs
// from the value that was read.
func TestWaiting(t *testing.T) {
	w := open(t, t.TempDir(), config.Options{File: []byte("[session]\nreap_interval = \"10s\"\n"), FileName: "f"})
	waiting := func(when string, want ...string) {
		t.Helper()
		if got := w.Waiting(); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	reload := func(content string) {
		t.Helper()
		if _, err := w.ReloadFile("f", []byte(content), func(*config.Store, []config.Change) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	reload("[session]\nreap_interval = \"11s\"\n")
	waiting("before the start")
	w.Begin()
	waiting("at the start")
	reload("provider = \"x\"\n[session]\nreap_interval = \"12s\"\n")
	waiting("changed in the file", "session.reap_interval")
	if err := w.Set("plugin.web.enabled", json.RawMessage("false")); err != nil {
		t.Fatal(err)
	}
	waiting("and another set", "plugin.web.enabled", "session.reap_interval")
	reload("[session]\nreap_interval = \"11s\"\n")
	if _, err := w.Unset("plugin.web.enabled"); err != nil {
		t.Fatal(err)
	}
	waiting("all as they were")
}
