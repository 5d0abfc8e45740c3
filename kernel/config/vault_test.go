package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/config"
)

// fakeVault is a vault in memory that takes values of eight bytes or more.
type fakeVault struct {
	m     map[string]string
	fails error
	sets  int
}

func (v *fakeVault) Get(name string) (string, error) {
	if x, ok := v.m[name]; ok {
		return x, nil
	}
	return "", fmt.Errorf("%s: set it with: yaya secret set %s", name, name)
}

func (v *fakeVault) Set(name, value string) error {
	if v.fails != nil {
		return v.fails
	}
	if len(value) < 8 {
		return fmt.Errorf("%w: too short", config.ErrUnfit)
	}
	v.sets++
	v.m[name] = value
	return nil
}

func (v *fakeVault) Remove(name string) error {
	delete(v.m, name)
	return v.fails
}

func withVault(t *testing.T, dir string, o config.Options) (*config.Store, *fakeVault, func() string) {
	t.Helper()
	w := open(t, dir, o)
	v := &fakeVault{m: map[string]string{}}
	w.Keep(v)
	return w.Store, v, func() string {
		raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatalf("ReadFile = %v, want no error, or that there is no file", err)
		}
		return string(raw)
	}
}

func put(t *testing.T, s *config.Store, key, value string) {
	t.Helper()
	if err := s.Set(key, json.RawMessage(value)); err != nil {
		t.Fatalf("Set(%s) = %v", key, err)
	}
}

// Literal secrets of providers and plugins go into the vault; other values, and those
// that the vault does not accept, stay.
func TestLiteralSecretsGoToTheVault(t *testing.T) {
	s, v, file := withVault(t, t.TempDir(), config.Options{})
	for _, c := range []struct{ key, value, want string }{
		{"providers.work.api_key", `"sk-canary-1"`, `"${secret:providers.work.api_key}"`},
		{"plugin.llm_openai.api_key", `"sk-canary-2"`, `"${secret:plugin.llm_openai.api_key}"`},
		{"providers.work.model", `"a-long-model"`, `"a-long-model"`},
		{"providers.short.api_key", `"short"`, `"short"`},
		{"providers.empty.api_key", `""`, `""`},
		{"providers.named.api_key", `"${secret:mine}"`, `"${secret:mine}"`},
		{"plugin.x.list", `[{"token":"not at the top"}]`, `[{"token":"not at the top"}]`},
	} {
		put(t, s, c.key, c.value)
		if got, _, _ := s.Get(c.key); string(got) != c.want {
			t.Errorf("%s = %s, want %s", c.key, got, c.want)
		}
	}
	if got, want := fmt.Sprint(v.m), "map[plugin.llm_openai.api_key:sk-canary-2 providers.work.api_key:sk-canary-1]"; got != want {
		t.Errorf("the vault has %s, want %s", got, want)
	}
	if strings.Contains(file(), "canary") {
		t.Errorf("the file has a secret: %s", file())
	}
	// A mask that comes back changes nothing.
	put(t, s, "providers.work.api_key", `"****"`)
	if v.m["providers.work.api_key"] != "sk-canary-1" {
		t.Errorf("after a mask the vault has %v", v.m)
	}
	// Shown returns the name of the user's own secret, and a mask for the others.
	for key, want := range map[string]string{"providers.work.api_key": `"****"`, "providers.named.api_key": `"${secret:mine}"`, "providers.short.api_key": `"****"`} {
		now, _, _ := s.Get(key)
		if got := config.Mask(key, now); string(got) != want {
			t.Errorf("%s is shown as %s, want %s", key, got, want)
		}
	}
	if slices.ContainsFunc(s.Secrets(), func(x string) bool { return strings.Contains(x, "${secret:") }) {
		t.Errorf("references are taken for secrets: %v", s.Secrets())
	}
	// When the vault fails, the old value holds, and the new one is stored nowhere.
	v.fails = errors.New("the disk is full")
	if err := s.Set("providers.work.api_key", json.RawMessage(`"sk-canary-3"`)); err == nil || !strings.Contains(err.Error(), "disk is full") || strings.Contains(err.Error(), "canary") {
		t.Errorf("Set with a vault that fails = %v", err)
	}
	if v.m["providers.work.api_key"] != "sk-canary-1" || strings.Contains(file(), "canary") {
		t.Errorf("after a failure the vault has %v, the file %s", v.m, file())
	}
}

// Users of a secret are notified when its value changes, even if the reference stays.
func TestChangedSecretsAreTold(t *testing.T) {
	w := open(t, t.TempDir(), config.Options{File: []byte("[plugin.x]\ntoken = \"${secret:mine}\"\n"), FileName: "f"})
	v := &fakeVault{m: map[string]string{}}
	w.Keep(v)
	set(t, w, "providers.work.api_key", `"sk-canary-1"`)
	set(t, w, "providers.work.api_key", `"sk-canary-2"`)
	if err := w.SecretChanged("mine"); err != nil {
		t.Fatal(err)
	}
	if err := w.SecretChanged("nobody's"); err != nil {
		t.Fatal(err)
	}
	if got, want := w.updates(t), []string{"providers.work.api_key", "providers.work.api_key", "plugin.x.token"}; !slices.Equal(got, want) {
		t.Errorf("told of %v, want %v", got, want)
	}
}

// The secret of a key is gone with the key, unless another refers to it.
func TestSecretsGoWithTheirKeys(t *testing.T) {
	s, v, _ := withVault(t, t.TempDir(), config.Options{})
	for name, c := range map[string]struct {
		do   func() error
		want int // secrets
	}{
		"unset":             {func() error { _, err := s.Unset("providers.work.api_key"); return err }, 0},
		"unset all":         {func() error { _, err := s.Unset("providers.work.*"); return err }, 0},
		"another reference": {func() error { return s.Set("providers.work.api_key", json.RawMessage(`"${secret:mine}"`)) }, 0},
		"nothing":           {func() error { return s.Set("providers.work.api_key", json.RawMessage(`""`)) }, 0},
		"another value":     {func() error { return s.Set("providers.work.api_key", json.RawMessage(`"sk-canary-2"`)) }, 1},
		"unset and still used": {func() error {
			put(t, s, "plugin.y.token", `"${secret:providers.work.api_key}"`)
			_, err := s.Unset("providers.work.api_key")
			return err
		}, 1},
		"an unset of other key": {func() error { _, err := s.Unset("providers.work.model"); return err }, 1},
	} {
		if _, err := s.Unset("plugin.y.token"); err != nil {
			t.Fatal(err)
		}
		clear(v.m)
		put(t, s, "providers.work.api_key", `""`)
		put(t, s, "providers.work.api_key", `"sk-canary-1"`)
		if err := c.do(); err != nil || len(v.m) != c.want {
			t.Errorf("%s: %v, the vault has %v, want %d", name, err, v.m, c.want)
		}
	}
}

// Secrets are put in where values are used, at any depth, and a missing one is named.
func TestReveal(t *testing.T) {
	s, v, _ := withVault(t, t.TempDir(), config.Options{})
	v.m["a"], v.m["b"] = `canary "a"`, "canary b"
	for in, want := range map[string]string{
		`"${secret:a}"`: `"canary \"a\""`, `"x ${secret:a} ${secret:b}"`: `"x canary \"a\" canary b"`,
		`{"k":["${secret:b}",1.50]}`: `{"k":["canary b",1.50]}`, `"plain"`: `"plain"`, `"${OTHER}"`: `"${OTHER}"`,
	} {
		if got, err := s.Reveal(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("Reveal(%s) = %s, %v, want %s", in, got, err, want)
		}
	}
	v.m["c"] = "${secret:a}" // a secret is a value, and nothing in it is a reference
	if got, err := s.Reveal(json.RawMessage(`"${secret:c}"`)); err != nil || string(got) != `"${secret:a}"` {
		t.Errorf("Reveal of a secret that looks like a reference = %s, %v", got, err)
	}
	if got, err := s.Reveal(json.RawMessage(`["${secret:gone}"]`)); err == nil || got != nil || !strings.Contains(err.Error(), "yaya secret set gone") {
		t.Errorf("Reveal of a missing secret = %s, %v", got, err)
	}
	put(t, s, "providers.work.plugin", `"p"`)
	put(t, s, "providers.work.api_key", `"${secret:gone}"`)
	put(t, s, "providers.work.model", `"m"`)
	i := s.Providers().Reveal(*s.Providers().GetInstance("work"))
	if i.Missing == nil || !strings.Contains(i.Missing.Error(), "providers.work.api_key") || i.Text("api_key") != "" || i.Text("model") != "m" {
		t.Errorf("an instance without its secret is %+v", i)
	}
	if got, err := s.Shown("providers.work.api_key", json.RawMessage(`"${secret:a}"`)); err != nil || string(got) != `"${secret:a}"` {
		t.Errorf("a secret of the user's own is shown as %s, %v", got, err)
	}
}

// SEC-12: a reference stays with its address, as the secret would.
func TestReferencesStayWithTheirAddress(t *testing.T) {
	s, _, _ := withVault(t, t.TempDir(), config.Options{})
	put(t, s, "providers.work.base_url", `"https://a.example"`)
	for _, key := range []string{`"sk-canary-1"`, `"${secret:mine}"`} {
		put(t, s, "providers.work.api_key", key)
		if err := s.CheckSecrets(map[string]json.RawMessage{"providers.work.base_url": json.RawMessage(`"https://evil.example"`)}); err == nil {
			t.Errorf("with the key %s another address is not refused", key)
		}
	}
}

// Literals that an earlier yaya has written are moved at the first start: whatever fails
// in between, and however often, each key is either as it was or a reference to a secret
// that is there.
func TestStowSecretsAtAnyPoint(t *testing.T) {
	const before = `{"version":1,"values":{"providers.aaa.api_key":"sk-canary-a","providers.bbb.api_key":"sk-canary-b","providers.ccc.api_key":"short","providers.ddd.model":"a-model-of-d","loop.max_iterations":9}}`
	for fails := range 4 { // which write fails
		for _, of := range []string{"vault", "file"} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			s, v, file := withVault(t, dir, config.Options{})
			n := 0
			s.Keep(&counting{v, func() error {
				if n++; n != fails {
					return nil
				}
				if of == "vault" {
					return errors.New("the disk is full")
				}
				// What follows, the file, cannot be written.
				tmp := filepath.Join(dir, fmt.Sprintf(".config.json.%d.tmp", os.Getpid()))
				return errors.Join(os.MkdirAll(filepath.Join(tmp, "x"), 0o700))
			}})
			moved, err := s.StowSecrets()
			if fails > 0 && fails < 3 && err == nil {
				t.Errorf("%s %d: StowSecrets = %v, want that it failed", of, fails, moved)
			}
			whole(t, dir, v)
			_ = os.RemoveAll(filepath.Join(dir, fmt.Sprintf(".config.json.%d.tmp", os.Getpid())))
			// The next start goes on, and the one after it finds nothing to do.
			again := open(t, dir, config.Options{})
			again.Keep(v)
			if _, err := again.StowSecrets(); err != nil {
				t.Errorf("%s %d: StowSecrets again = %v", of, fails, err)
			}
			whole(t, dir, v)
			if text := file(); strings.Contains(text, "canary") || !strings.Contains(text, "short") {
				t.Errorf("%s %d: the file is %s", of, fails, text)
			}
			if moved, err := again.StowSecrets(); err != nil || moved != nil {
				t.Errorf("%s %d: StowSecrets a third time = %v, %v, want nothing to do", of, fails, moved, err)
			}
		}
	}
}

// counting is a vault that may fail.
type counting struct {
	*fakeVault
	before func() error
}

func (c *counting) Set(name, value string) error {
	if len(value) >= 8 {
		if err := c.before(); err != nil {
			return err
		}
	}
	return c.fakeVault.Set(name, value)
}

// whole checks that every key of a file has its value, there or in the vault.
func whole(t *testing.T, dir string, v *fakeVault) {
	t.Helper()
	s := open(t, dir, config.Options{})
	s.Keep(v)
	for key, want := range map[string]string{"providers.aaa.api_key": `"sk-canary-a"`, "providers.bbb.api_key": `"sk-canary-b"`, "providers.ccc.api_key": `"short"`, "providers.ddd.model": `"a-model-of-d"`} {
		now, _, _ := s.Get(key)
		if got, err := s.Reveal(now); err != nil || string(got) != want {
			t.Errorf("%s = %s, %v, want %s", key, got, err, want)
		}
	}
}
