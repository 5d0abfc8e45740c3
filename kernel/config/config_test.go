package config_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store with a bus that remembers what was announced.
type world struct {
	*config.Store
	bus *bus.Bus
	mu  sync.Mutex
	got []event.Event
}

func open(t *testing.T, dir string, o config.Options) *world {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.Root = root
	s, err := config.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Store: s, bus: bus.New(bus.Config{})}
	s.Bind(w.bus)
	_, err = bus.On(w.bus, bus.SubscribeOptions{Name: "w"}, event.ConfigWasUpdated, func(_ context.Context, ev event.Event, _ event.ConfigUpdated) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got = append(w.got, ev)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.bus.Close(context.Background())
		_ = root.Close()
	})
	return w
}

// updates closes the bus and returns the keys that were announced.
func (w *world) updates(t *testing.T) (keys []string) {
	t.Helper()
	if err := w.bus.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ev := range w.got {
		p := ev.Payload.(event.ConfigUpdated)
		if ev.SessionID != event.KernelSession || p.PrefixMatchHint != event.PrefixHint(p.Key) { // Y-54, Y-55
			t.Errorf("got %+v; want it on the kernel session, with the hint of its key", ev)
		}
		keys = append(keys, p.Key)
	}
	return keys
}

func set(t *testing.T, s *world, key, v string) {
	t.Helper()
	if err := s.Set(key, json.RawMessage(v)); err != nil {
		t.Fatal(err)
	}
}

// Y-73, Y-54: set and unset persist, are visible, and are announced once each.
func TestSetAndUnset(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, config.Options{})
	set(t, w, "plugin.web.theme", ` "dark" `)
	set(t, w, "plugin.web.theme", `"dark"`) // no change, nothing to tell
	set(t, w, "plugin.web.deep", `{"a": [1, {"b": 2}]}`)
	set(t, w, "provider", `"prod"`)
	if v, _, _ := w.Get("plugin.web.deep"); string(v) != `{"a":[1,{"b":2}]}` {
		t.Errorf("the value became %s", v)
	}
	if removed, err := w.Unset("provider"); !removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err := w.Unset("provider"); removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	set(t, w, "providers.abc.x", `1`)
	set(t, w, "providers.abc.y", `2`)
	if removed, err := w.Unset("providers.abc.*"); !removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	if got, want := w.updates(t), []string{"plugin.web.theme", "plugin.web.deep", "provider", "provider", "providers.abc.x", "providers.abc.y", "providers.abc.x", "providers.abc.y"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	again := open(t, dir, config.Options{})
	if v, from, ok := again.Get("plugin.web.theme"); !ok || string(v) != `"dark"` || from != config.FromStore {
		t.Errorf("got %s from %s", v, from)
	}
	st, err := os.Stat(filepath.Join(dir, "config.json"))
	if err != nil || st.Mode().Perm() != 0o600 { // ST-20
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, config.Options{})
	set(t, w, "loop.max_iterations", `4`)
	file := []byte("strategy = \"f\"\n[loop]\nmax_iterations = 3\nllm_timeout = \"3s\"\n[plugin.web]\nport = 1\nname = \"x\"\n[compaction]\nthreshold = 1\n")
	w = open(t, dir, config.Options{
		File: file, FileName: "config.toml",
		Env:   []string{"YAYA_LOOP__LLM_TIMEOUT=5s", "YAYA_PLUGIN__WEB__PORT=2", "YAYA_PROCESS_GUARD=x", "OTHER=1", "YAYA_PLUGIN__NEW__API_KEY=123"},
		Flags: map[string]string{"plugin.web.port": "9"},
	})
	for key, want := range map[string]struct {
		value string
		from  config.Origin
	}{
		"approval.timeout":    {`"60s"`, config.FromDefault},
		"strategy":            {`"f"`, config.FromFile},
		"loop.max_iterations": {`4`, config.FromStore},
		"loop.llm_timeout":    {`"5s"`, config.FromEnv},
		"plugin.web.port":     {`9`, config.FromFlag},
		"plugin.new.api_key":  {`"123"`, config.FromEnv}, // a secret is text
	} {
		if v, from, ok := w.Get(key); !ok || string(v) != want.value || from != want.from {
			t.Errorf("%s: got %s from %s, want %s from %s", key, v, from, want.value, want.from)
		}
	}
	if w.Int("loop.max_iterations") != 4 || w.Duration("loop.llm_timeout").Seconds() != 5 || !w.Bool("compaction.enabled") || w.Text("strategy") != "f" {
		t.Error("typed values")
	}
	if _, _, ok := w.Get("process.guard"); ok {
		t.Error("somebody else's variable was taken")
	}
	if all := w.All("plugin."); len(all) != 3 || all[0].Key != "plugin.new.api_key" {
		t.Errorf("got %+v; want 3 settings, with plugin.new.api_key first", all)
	}
}

// ST-19, R31: mistakes are refused, with their place.
func TestRefused(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, c := range map[string]struct {
		o    config.Options
		want string
	}{
		"syntax":      {config.Options{File: []byte("a = 1\nb = = 2")}, "f.toml:2:"},
		"duplicate":   {config.Options{File: []byte("strategy = \"a\"\nstrategy = \"b\"")}, "f.toml:"},
		"unknown":     {config.Options{File: []byte("\n[loop]\n\nmax_iteratoins = 3")}, `f.toml:4: there is no key "loop.max_iteratoins"; did you mean loop.max_iterations?`},
		"type":        {config.Options{File: []byte("[approval]\ntimeout = 3")}, "f.toml:2: approval.timeout must be a duration"},
		"provider id": {config.Options{File: []byte("[providers.A]\nplugin = \"x\"")}, "f.toml:2: providers.A.plugin"},
		"huge":        {config.Options{File: make([]byte, config.MaxFile+1)}, "at most"},
		"environment": {config.Options{Env: []string{"YAYA_LOOP__MAX_ITERATIONS=0"}}, "YAYA_LOOP__MAX_ITERATIONS"},
		"flag":        {config.Options{Flags: map[string]string{"nope": "1"}}, "nope"},
	} {
		c.o.Root, c.o.FileName = root, "f.toml"
		if _, err := config.Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	w := open(t, t.TempDir(), config.Options{})
	for key, v := range map[string]string{"": `1`, "a..b": `1`, "plugin.x": `{`, "plugin.y": `"` + strings.Repeat("x", config.MaxValue) + `"`, "compaction.enabled": `"yes"`, "approval.rules": `{}`, "providers.ab.plugin": `"x"`} {
		if err := w.Set(key, json.RawMessage(v)); err == nil {
			t.Errorf("%s = %.20s was taken", key, v)
		}
	}
}

// A live part that is damaged is refused at start, and ignored while running.
func TestDamagedStore(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, config.Options{})
	set(t, w, "strategy", `"a"`)
	path := filepath.Join(dir, "config.json")
	for _, bad := range []string{"", "{", `{"version":2,"values":{}}`, `{"version":1,"values":{},"more":1}`, `{"version":1,"values":{"no.such":1}}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := w.Refresh(); err == nil {
			t.Errorf("%q was taken over", bad)
		}
		if w.Text("strategy") != "a" {
			t.Errorf("after %q the last good value is gone", bad)
		}
		root, _ := os.OpenRoot(dir)
		if _, err := config.Open(config.Options{Root: root}); err == nil || !strings.Contains(err.Error(), "config.json") {
			t.Errorf(`%q: got %v, want an error, err with "config.json"`, bad, err)
		}
		root.Close()
	}
}

// Two processes share the live part: neither loses what the other wrote, and
// each learns of it.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, config.Options{}), open(t, dir, config.Options{})
	set(t, a, "plugin.a.x", `1`)
	set(t, b, "plugin.b.x", `2`)
	if err := a.Refresh(); err != nil {
		t.Fatal(err)
	}
	if v, _, _ := a.Get("plugin.b.x"); string(v) != "2" {
		t.Errorf("got %s, want 2", v)
	}
	if got := a.updates(t); !slices.Equal(got, []string{"plugin.a.x", "plugin.b.x"}) {
		t.Errorf("got %v, want [plugin.a.x plugin.b.x]", got)
	}
	if got := b.updates(t); !slices.Equal(got, []string{"plugin.a.x", "plugin.b.x"}) {
		t.Errorf("got %v, want [plugin.a.x plugin.b.x]", got)
	}
}

// Y-207, Y-208: secrets are masked at any depth, and writing the mask back
// changes nothing.
func TestMask(t *testing.T) {
	for _, c := range []struct{ key, in, want string }{
		{"providers.prod.api_key", `"sk-12345678"`, `"****"`},
		{"plugin.x.token", `"1234"`, `"****"`},
		{"plugin.x.secret", `12345678`, `"****"`},
		{"password", `{"a":"b"}`, `"****"`},
		{"plugin.x.client_secret", `"1234"`, `"****"`},
		{"plugin.x.token", `""`, `""`},
		{"plugin.x.token", `null`, `null`},
		{"plugin.x.max_tokens", `7`, `7`},
		{"plugin.x.api_key_file", `"/etc/key"`, `"/etc/key"`},
		{"plugin.x.list", `[{"token":"abcdefgh","n":12345678901234567890}]`, `[{"n":12345678901234567890,"token":"****"}]`},
		{"plugin.x.api_key", `"schlüssel"`, `"****"`},
	} {
		if got := config.Mask(c.key, json.RawMessage(c.in)); string(got) != c.want {
			t.Errorf("%s: got %s, want %s", c.key, got, c.want)
		}
	}
	w := open(t, t.TempDir(), config.Options{})
	set(t, w, "providers.prod.api_key", `"sk-12345678"`)
	set(t, w, "providers.prod.api_key", `"****"`)
	if got := w.Text("providers.prod.api_key"); got != "sk-12345678" {
		t.Errorf("the key became %s", got)
	}
}

// Y-75, Y-76, Y-77, Y-78, Y-88: the view of the providers.
func TestProviders(t *testing.T) {
	w := open(t, t.TempDir(), config.Options{File: []byte("[providers.from-file]\nplugin = \"llm-openai\"\nmodel = \"m0\"\n"), FileName: "f"})
	p := w.Providers()
	if p.GetInstance("prod") != nil || p.ActiveID() != "" {
		t.Error("there is something already")
	}
	if _, _, err := p.Active(); err == nil || !strings.Contains(err.Error(), "yaya provider use") {
		t.Errorf(`got %v, want an error that says "yaya provider use"`, err)
	}
	set(t, w, "providers.prod.plugin", `"llm-openai"`)
	set(t, w, "providers.prod.label", `"Production"`)
	set(t, w, "providers.prod.model", `"gpt"`)
	set(t, w, "providers.prod.headers.x-team", `"a"`)
	set(t, w, "providers.half.model", `"no plugin, no instance"`)
	set(t, w, "providers.echo.plugin", `"llm-echo"`)
	set(t, w, "provider", `"prod"`)
	got := p.GetInstance("prod") // visible at once (Y-78)
	want := &config.Instance{ID: "prod", Plugin: "llm-openai", Label: "Production", Config: map[string]json.RawMessage{"model": json.RawMessage(`"gpt"`), "headers.x-team": json.RawMessage(`"a"`)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var ids []string
	for _, i := range p.ListInstances() {
		ids = append(ids, i.ID)
	}
	if !slices.Equal(ids, []string{"echo", "from-file", "prod"}) || len(p.InstancesForPlugin("llm-openai")) != 2 {
		t.Errorf("got %v; want [echo from-file prod], two of them of llm-openai", ids)
	}
	if got, none := p.PluginOf("prod"), p.PluginOf("gone"); got != "llm-openai" || none != "" {
		t.Errorf("the plugins of prod and of one that is gone: %q and %q, want llm-openai and none", got, none)
	}
	if i, model, err := p.Active(); err != nil || i.ID != "prod" || model != "gpt" { // Y-88
		t.Errorf("got %+v %s %v; want prod with the model gpt", i, model, err)
	}
	set(t, w, "provider", `"from-file"`)
	if _, model, _ := p.Active(); model != "m0" {
		t.Errorf("the flip is not seen: %s", model)
	}
	set(t, w, "provider", `"gone"`)
	if _, _, err := p.Active(); err == nil {
		t.Error("a missing instance is active")
	}
	v := reflect.TypeFor[config.Providers]()
	for i := range v.NumMethod() { // Y-78: the view cannot write
		if n := v.Method(i).Name; !slices.Contains([]string{"Active", "ActiveID", "GetInstance", "InstancesForPlugin", "ListInstances", "PluginOf", "Reveal"}, n) {
			t.Errorf("the view has a method %s", n)
		}
	}
}

// Y-89.
func TestInstanceIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"abc": true, "a-c": true, "0a1": true, strings.Repeat("a", 64): true,
		"ab": false, strings.Repeat("a", 65): false, "-ab": false, "ab-": false, "a.b": false, "Abc": false, "a_b": false, "": false, "äbc": false,
	} {
		if got := config.ValidInstanceID(id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
}

// Y-79, Y-80, Y-81, Y-82, Y-83, Y-84: the first providers are written once; a
// crash half-way leads to another go.
func TestSeedProviders(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, config.Options{})
	set(t, w, "plugin.llm_openai.api_key", `"sk-1"`)
	set(t, w, "plugin.llm_openai.base_url", `"http://x"`)
	set(t, w, "providers.llm-echo.plugin", `"llm-echo"`) // as far as a crash let an earlier go come
	if err := w.SeedProviders([]string{"llm-echo", "llm-openai"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"providers.llm-echo.plugin":     `"llm-echo"`,             // Y-80
		"providers.llm-echo.label":      `"llm-echo (default)"`,   // Y-81
		"providers.llm-openai.plugin":   `"llm-openai"`,           // Y-80
		"providers.llm-openai.label":    `"llm-openai (default)"`, // Y-81
		"providers.llm-openai.api_key":  `"sk-1"`,                 // Y-82
		"providers.llm-openai.base_url": `"http://x"`,             // Y-82
		"plugin.llm_openai.api_key":     `"sk-1"`,                 // Y-82: the old rows stay
		"provider":                      `"llm-echo"`,             // Y-83
	}
	for k, v := range want {
		if got, _, _ := w.Get(k); string(got) != v {
			t.Errorf("%s: got %s, want %s", k, got, v)
		}
	}
	set(t, w, "providers.llm-echo.label", `"mine"`)
	if _, err := w.Unset("providers.llm-openai.*"); err != nil {
		t.Fatal(err)
	}
	if err := w.SeedProviders([]string{"llm-echo", "llm-openai"}); err != nil { // Y-79: once
		t.Fatal(err)
	}
	if w.Providers().GetInstance("llm-openai") != nil || w.Providers().GetInstance("llm-echo").Label != "mine" {
		t.Error("seeded twice")
	}
	keys := w.updates(t)
	if i := slices.Index(keys, "_meta.providers_seeded_at"); i < 0 || i < slices.Index(keys, "providers.llm-openai.base_url") || i < slices.Index(keys, "provider") { // Y-84
		t.Errorf("the mark is not last: %v", keys)
	}
}

// Y-83: a choice that was made stays.
func TestSeedKeepsTheChoice(t *testing.T) {
	chosen := open(t, t.TempDir(), config.Options{})
	set(t, chosen, "provider", `"mine"`)
	for _, w := range []*world{open(t, t.TempDir(), config.Options{Env: []string{"YAYA_PROVIDER=mine"}}), chosen} {
		if err := w.SeedProviders([]string{"llm-echo"}); err != nil {
			t.Fatal(err)
		}
		if got := w.Text("provider"); got != "mine" {
			t.Errorf("got %s, want mine", got)
		}
	}
	if err := chosen.SeedProviders(nil); err != nil { // no provider is loaded: nothing is done, and not marked as done
		t.Fatal(err)
	}
	none := open(t, t.TempDir(), config.Options{})
	if err := none.SeedProviders(nil); err != nil {
		t.Fatal(err)
	}
	if _, _, marked := none.Get("_meta.providers_seeded_at"); marked {
		t.Error("marked as done")
	}
}
