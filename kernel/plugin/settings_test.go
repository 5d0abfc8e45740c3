package plugin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/plugin"
)

// A setting that does not fit its schema is refused, and named by doctor when it came another way; the reason has no
// value that may be a secret.
func TestSettingsFitTheSchema(t *testing.T) {
	f := adapter("odd-one")
	f.m.ConfigSchema = json.RawMessage(`{"type":"object","$defs":{"d":{"type":"string"}},"properties":{
		"mode":{"enum":["off","on"]},"token":{"type":"string","pattern":"^sk-"},"port":{"type":"integer","maximum":9},"other":{"$ref":"#/$defs/d"}}}`)
	w := newWorld(t)
	w.Load(t.Context(), true, f)
	for key, tt := range map[string]struct{ value, want string }{
		"plugin.odd_one.mode":    {`"ON"`, "plugin.odd_one.mode: value must be one of 'off', 'on'"},
		"plugin.odd_one.token":   {`"canary"`, "plugin.odd_one.token: it does not fit the plugin's schema"},
		"plugin.odd_one.port":    {`10`, "plugin.odd_one.port: maximum: got 10, want 9"},
		"plugin.odd_one.other":   {`5`, ""}, // its schema is elsewhere
		"plugin.odd_one.unknown": {`5`, ""},
		"plugin.odd_one":         {`5`, ""},
		"plugin.odd.mode":        {`5`, ""},
	} {
		v := json.RawMessage(tt.value)
		err := w.CheckSetting(key, v)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s = %s: %v, want no error", key, v, err)
			}
			continue
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s = %s: %v, want %q", key, v, err, tt.want)
		}
		if err := w.cfg.Set(key, v); err != nil { // as from a file
			t.Fatal(err)
		}
	}
	for key, v := range map[string]string{"plugin.odd_one.mode": `"on"`, "plugin.odd_one.token": `"${secret:x}"`, "plugin.odd_one.port": `9`} {
		if err := w.CheckSetting(key, json.RawMessage(v)); err != nil {
			t.Errorf("%s = %s: %v, want no error", key, v, err)
		}
	}
	got := w.Doctor(t.Context(), 0)[0]
	var names []string
	for _, d := range got.Details {
		names = append(names, d.Name)
	}
	if got.Status != plugin.Degraded || strings.Join(names, " ") != "plugin.odd_one.mode plugin.odd_one.port plugin.odd_one.token" {
		t.Errorf("doctor says %+v", got)
	}
}
