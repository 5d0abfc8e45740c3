package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/config"
)

// SEC-12: secrets of the file and of the environment stay with the addresses beside
// them; their masks, when they come back, are not stored.
func TestSecretsOfOtherLayers(t *testing.T) {
	const file = "[providers.prod]\nplugin = \"llm-openai\"\nbase_url = \"https://a.example/v1\"\napi_key = \"canary\"\n[plugin.x]\nlist = [{token = \"canary\", n = 1}]\n"
	w := open(t, t.TempDir(), config.Options{File: []byte(file), FileName: "f", Env: []string{"YAYA_PROVIDERS__WORK__API_KEY=canary"}})
	set(t, w, "providers.prod.api_key", `"****"`)
	set(t, w, "plugin.x.list", `[{"token":"****","n":1}]`)
	for _, key := range []string{"providers.prod.api_key", "plugin.x.list"} {
		if _, from, _ := w.Get(key); from != config.FromFile {
			t.Errorf("%s comes from the %s, want the file", key, from)
		}
	}
	change := func(pairs ...string) error {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				m[pairs[i]] = nil
				continue
			}
			m[pairs[i]] = json.RawMessage(pairs[i+1])
		}
		return w.CheckSecrets(m)
	}
	set(t, w, "providers.other.api_key", `"mine"`)
	set(t, w, "providers.other.base_url", `"https://b.example"`)
	// A masked element of a list gets the secret of its own place.
	set(t, w, "plugin.x.more", `[{"token":"first","n":1},{"token":"second","n":2}]`)
	set(t, w, "plugin.x.more", `[{"token":"****","n":1},{"token":"other","n":3}]`)
	if got, _, _ := w.Get("plugin.x.more"); string(got) != `[{"n":1,"token":"first"},{"n":3,"token":"other"}]` {
		t.Errorf("plugin.x.more = %s, want the first token, and the other", got)
	}
	set(t, w, "providers.port.base_url", `"https://c.example:443/v1/"`)
	set(t, w, "providers.port.api_key", `"mine"`)
	for name, c := range map[string]struct {
		pairs []string
		key   string // that the refusal names, "" for none
	}{
		"the file's key":                     {[]string{"providers.prod.base_url", `"https://evil"`}, "providers.prod.api_key"},
		"the environment's key":              {[]string{"providers.work.plugin", `"llm-openai"`, "providers.work.base_url", `"https://evil"`}, "providers.work.api_key"},
		"the environment's has the last say": {[]string{"providers.work.base_url", `"https://evil"`, "providers.work.api_key", `"mine"`}, "providers.work.api_key"},
		"both":                               {[]string{"providers.prod.base_url", `"https://mine"`, "providers.prod.api_key", `"mine"`}, ""},
		"the same address, written shorter":  {[]string{"providers.port.base_url", `"HTTPS://C.example/v1"`}, ""},
		"another port":                       {[]string{"providers.port.base_url", `"https://c.example:444/v1"`}, "providers.port.api_key"},
		"another field":                      {[]string{"providers.prod.model", `"m"`}, ""},
		"key and address removed":            {[]string{"providers.other.base_url", "", "providers.other.api_key", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := change(c.pairs...)
			if (err == nil) != (c.key == "") || (err != nil && !strings.Contains(err.Error(), c.key)) {
				t.Errorf("CheckSecrets(%v) = %v, want a refusal of %q", c.pairs, err, c.key)
			}
		})
	}
	// A key of the file that comes to light does not go where another went.
	set(t, w, "providers.prod.base_url", `"https://mine"`)
	set(t, w, "providers.prod.api_key", `"mine"`)
	if err := change("providers.prod.api_key", ""); err == nil || !strings.Contains(err.Error(), "providers.prod.api_key") {
		t.Errorf("got %v, want a refusal: the file's key would go to another address", err)
	}
	if err := change("providers.prod.api_key", "", "providers.prod.base_url", ""); err != nil {
		t.Errorf("both taken back: %v", err)
	}
	if err := w.Set("plugin.y.token", json.RawMessage(`"****"`)); err == nil {
		t.Error("a mask was stored as a secret")
	}
}
