package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/config"
)

// A number that would overflow, or make a part of yaya useless, is refused with its range.
func TestRangesOfNumbers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ key, value, want string }{
		{"traffic.days", `-5`, "a whole number from 0 to 36500, not -5"},
		{"traffic.days", `0`, ""},
		{"traffic.days", `9223372036854775807`, "from 0 to 36500"},
		{"traffic.days", `null`, "from 0 to 36500"},
		{"traffic.days", `1.5`, "from 0 to 36500"},
		{"traffic.max_bytes", `1`, "from 1048576 to 1099511627776"},
		{"traffic.max_bytes", `1048576`, ""},
		{"servers.max_message_bytes", `1`, "from 1048576 to 268435456"},
		{"servers.max_message_bytes", `268435457`, "from 1048576 to 268435456"},
		{"servers.tool_max_sec", `9223372037`, "from 1 to 31536000"}, // more nanoseconds than there are
		{"loop.max_iterations", `0`, "from 1 to 1000000"},
		{"compaction.threshold", `99999999999`, "from 1 to 1000000000"},
		{"compaction.target", `99999999999`, "from 1 to 1000000000"},
		{"compaction.tries", `1000`, "from 1 to 100"},
		{"plugins.max_failures", `-1`, "from 1 to 1000000"},
		{"agent_tool.max_depth", `1000000`, "from 1 to 100"},
		{"session.reap_interval", `"1ns"`, `a duration from 100ms to 720h, such as "60s", not "1ns"`},
		{"session.reap_interval", `"100ms"`, ""},
		{"session.heartbeat_timeout", `"-60s"`, "from 100ms to 720h"},
		{"approval.timeout", `"100000h"`, "from 100ms to 720h"},
		{"approval.timeout", `60`, "from 100ms to 720h"},
		{"loop.llm_timeout", `"1us"`, "from 100ms to 720h"},
		{"plugins.handler_timeout", `"0s"`, "from 100ms to 720h"},
		{"agent_tool.max_wall", `"1000000h"`, "from 100ms to 720h"},
	} {
		err := config.CheckValue(tc.key, json.RawMessage(tc.value))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("CheckValue(%s, %s) = %v, want %q", tc.key, tc.value, err, tc.want)
		}
	}
	for _, k := range config.Keys {
		if err := config.CheckValue(k.Name, json.RawMessage(`9223372036854775807`)); err == nil {
			t.Errorf("CheckValue(%s, 9223372036854775807) = nil, want a range", k.Name)
		}
		if (k.Default == "") != (k.Unset() != "") {
			t.Errorf("%s has the default %q and the description %q, want one of them", k.Name, k.Default, k.Unset())
		}
		if k.Default == "" {
			continue
		}
		if err := config.CheckValue(k.Name, json.RawMessage(k.Default)); err != nil {
			t.Errorf("CheckValue of the default of %s = %v, want none", k.Name, err)
		}
	}
}

// A list that nobody could use is refused with one that works; the live part of an old data
// directory can hold one.
func TestItemsOfLists(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ key, value, want string }{
		{"workspace.roots", `["/home/me/work"]`, ""},
		{"workspace.roots", `[]`, ""},
		{"workspace.roots", `[1,2]`, `workspace.roots must be a list of strings, such as ["/home/me/work"], not [1,2]`},
		{"workspace.roots", `[""]`, "must be a list of strings"},
		{"wire.export", `[["x"]]`, `such as ["one","two"], not [["x"]]`},
		{"sandbox.command.hosts", `[{"host":"x"}]`, "sandbox.command.hosts must be a list of strings"},
		{"approval.groups.team", `[1]`, `such as ["device:phone","token:ci"], not [1]`},
		{"approval.rules", `[{"tool":"x","decision":"deny"}]`, ""},
	} {
		err := config.CheckValue(tc.key, json.RawMessage(tc.value))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("CheckValue(%s, %s) = %v, want %q", tc.key, tc.value, err, tc.want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"version":1,"values":{"wire.export":[1]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, dir, config.Options{})
	if got, _, _ := w.Get("wire.export"); string(got) != `[1]` {
		t.Errorf("Get(wire.export) = %s, want [1]", got)
	}
}

// A data directory with a value that was accepted before there were ranges opens, and the
// nearest end of the range is in force; the settings file and the environment, which a person
// can mend, are refused with the place.
func TestRangesOfOldDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := `{"version":1,"values":{"traffic.days":99999999,"traffic.max_bytes":1,"session.reap_interval":"1ns","loop.max_iterations":9,"compaction.tries":null}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, dir, config.Options{})
	for key, want := range map[string]string{"traffic.days": `36500`, "traffic.max_bytes": `1048576`, "session.reap_interval": `"100ms"`, "loop.max_iterations": `9`, "compaction.tries": `1`} {
		if got, _, _ := w.Get(key); string(got) != want {
			t.Errorf("Get(%s) = %s, want %s", key, got, want)
		}
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for want, o := range map[string]config.Options{
		"f.toml:2: traffic.days must be": {File: []byte("[traffic]\ndays = 99999999\n"), FileName: "f.toml"},
		"YAYA_TRAFFIC__DAYS":             {Env: []string{"YAYA_TRAFFIC__DAYS=99999999"}},
	} {
		o.Root = root
		if _, err := config.Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want %q", err, want)
		}
	}
}
