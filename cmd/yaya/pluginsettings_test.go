package main

import (
	"strings"
	"testing"
)

// A value that does not fit the schema of a plugin's setting is refused, with and without a daemon. One from a file
// is named by doctor.
func TestPluginSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for kind, daemon := range map[string]bool{"alone": false, "beside a daemon": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.edit("config.toml", "[plugin.tool_workspace]\npatch_review = \"always\"\n[plugin.strategy_react]\nmemory = \"${secret:x}\"\n")
			if daemon {
				b.serve()
			}
			for _, tt := range []struct{ key, value, want string }{
				{"strategy_coder.memory", "FULL", "value must be one of 'off', 'recall', 'full'"},
				{"strategy_coder.auto_verify", "5", "got number, want boolean"},
				{"strategy_coder.repairs", "many", "got string, want integer"},
				{"strategy_coder.memory", "full", ""},
				{"strategy_coder.unknown", "5", ""},
				{"somebodys.memory", "FULL", ""},
			} {
				out, said, code := b.in(b.dir, "config", "set", "plugin."+tt.key, tt.value)
				if (code == 0) != (tt.want == "") || !strings.Contains(said, tt.want) {
					t.Errorf("%s = %s: %d %q %q, want %q", tt.key, tt.value, code, out, said, tt.want)
				}
			}
			if got, _, _ := b.in(b.dir, "doctor"); !strings.Contains(got, "plugin.tool_workspace.patch_review: value must be one of 'off', 'request', 'auto'") {
				t.Errorf("doctor says %q", got)
			}
		})
	}
}
