package secrets

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const canary = "canary-5f2b9 \"quoted\" é"

// place is a data folder and a configuration folder.
type place struct {
	t         *testing.T
	data, key string
	root      *os.Root
	learnt    []string
	lessons   int // calls of learn
	o         Options
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, data: t.TempDir(), key: filepath.Join(t.TempDir(), "config")}
	var err error
	if p.root, err = os.OpenRoot(p.data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.root.Close() })
	p.o = Options{cost: kdf{Passes: 1, Memory: minMemory, Lanes: 1}, Data: p.root, KeyDir: p.key, Learn: p.learn}
	return p
}

func (p *place) learn(values map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.learnt = append(p.learnt, name+"="+values[name])
	}
	p.lessons++
}

// store is one that has read nothing, as after a restart.
func (p *place) store() *Store { return New(p.o) }

func (p *place) set(name, value string) {
	p.t.Helper()
	if _, err := p.store().Set(name, value); err != nil {
		p.t.Fatalf("Set(%s) = %v", name, err)
	}
}

func (p *place) want(name, value string) {
	p.t.Helper()
	if got, err := p.store().Get(name); err != nil || got != value {
		p.t.Errorf("Get(%s) = %q, %v, want %q", name, got, err, value)
	}
}

func (p *place) file() []byte {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.data, File))
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

func (p *place) passphrase(text string) {
	p.t.Helper()
	p.o.Passphrase = filepath.Join(p.t.TempDir(), "passphrase")
	if err := os.WriteFile(p.o.Passphrase, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Add does not replace a value of somebody else, and RemoveValue does not remove it.
func TestAddKeepsWhatIsThere(t *testing.T) {
	p := newPlace(t)
	if added, err := p.store().Add("x", "first-value"); !added || err != nil {
		t.Errorf("Add = %v, %v, want true", added, err)
	}
	p.set("x", "of-somebody-else")
	if added, err := p.store().Add("x", "second-value"); added || err != nil {
		t.Errorf("Add again = %v, %v, want false", added, err)
	}
	if err := errors.Join(p.store().RemoveValue("x", "first-value"), p.store().RemoveValue("none", "first-value")); err != nil {
		t.Errorf("RemoveValue = %v", err)
	}
	p.want("x", "of-somebody-else")
	if err := p.store().RemoveValue("x", "of-somebody-else"); err != nil {
		t.Errorf("RemoveValue = %v", err)
	}
	if all, err := p.store().List(); len(all) != 0 || err != nil {
		t.Errorf("List = %v, %v, want nothing", all, err)
	}
	if added, err := p.store().Add("../x", "first-value"); added || err == nil {
		t.Errorf("Add of an unfit name = %v, %v, want an error", added, err)
	}
}

func TestSetGetListRemove(t *testing.T) {
	p := newPlace(t)
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	p.o.Now = func() time.Time { return at }
	if got, err := p.store().List(); err != nil || len(got) != 0 {
		t.Errorf("List of nothing = %v, %v", got, err)
	}
	if found, err := p.store().Remove("x"); found || err != nil {
		t.Errorf("Remove of nothing = %v, %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(p.data, File)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking has made a file: %v", err)
	}
	if replaced, err := p.store().Set("openai", canary); replaced || err != nil {
		t.Errorf("Set = %v, %v", replaced, err)
	}
	p.set("A.b_c-1", "another-value")
	p.want("openai", canary)
	if replaced, err := p.store().Set("openai", "a-changed-value"); !replaced || err != nil {
		t.Errorf("Set again = %v, %v", replaced, err)
	}
	p.want("openai", "a-changed-value")
	if got, want := fmt.Sprint(p.store().List()), fmt.Sprint([]Info{{"A.b_c-1", at}, {"openai", at}}, nil); got != want {
		t.Errorf("List = %s, want %s", got, want)
	}
	if found, err := p.store().Remove("openai"); !found || err != nil {
		t.Errorf("Remove = %v, %v", found, err)
	}
	_, err := p.store().Get("openai")
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "yaya secret set openai") {
		t.Errorf("Get of what was removed = %v, want the command that sets it", err)
	}
	for _, f := range []string{filepath.Join(p.data, File), filepath.Join(p.key, KeyFile)} {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want 0600", f, st.Mode(), err)
		}
	}
	if st, err := os.Stat(p.key); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v, want 0700", p.key, st.Mode(), err)
	}
	for _, dir := range []string{p.data, p.key} {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if strings.HasSuffix(e.Name(), ".tmp") || strings.HasPrefix(e.Name(), ".") {
				t.Errorf("%s is left over", e.Name())
			}
		}
	}
}

func TestNamesAndValues(t *testing.T) {
	p := newPlace(t)
	for name, c := range map[string]struct{ name, value, want string }{
		"no name":             {"", "long enough", "cannot be the name"},
		"a long name":         {strings.Repeat("n", 129), "long enough", "cannot be the name"},
		"a path":              {"../x", "long enough", "cannot be the name"},
		"a record":            {"oauth/x", "long enough", "cannot be the name"},
		"a reference":         {"x}", "long enough", "cannot be the name"},
		"no value":            {"x", "", "empty"},
		"one below the least": {"x", "value67"[:Shortest-1], "cannot be hidden"},
		"one above the most":  {"x", strings.Repeat("v", Longest+1), "cannot be hidden"},
		"a line":              {"x", "----====----", "different characters"},
		"a mask":              {"x", "abcdefg****", "stands for a secret"},
		"NUL":                 {"x", "abcdefg\x00h", "base64"},
		"not UTF-8":           {"x", "abcdefg\xffh", "base64"},
	} {
		if _, err := p.store().Set(c.name, c.value); err == nil || !strings.Contains(err.Error(), c.want) || c.value != "" && strings.Contains(err.Error(), c.value) {
			t.Errorf("%s: Set = %v, want %q without the value", name, err, c.want)
		}
	}
	p.set(strings.Repeat("n", 128), "value678")
	p.set("most", strings.Repeat("value678", Longest/len("value678")))
}

// encodings are spellings of a value in which a file could have it.
func encodings(v string) []string {
	quoted, _ := json.Marshal(v)
	out := []string{v, string(quoted[1 : len(quoted)-1]), hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v)))}
	for shift := range 3 {
		b := append(make([]byte, shift), v...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out = append(out, enc.EncodeToString(b)[(shift*8+5)/6:len(b)*8/6])
		}
	}
	return out
}

// The sealed file has a value in no spelling, neither as it is written nor with its
// base64 taken off; nor has it names.
func TestSealedFileHidesAll(t *testing.T) {
	p := newPlace(t)
	p.set("openai-of-work", canary)
	if err := p.store().PutRecord("oauth/issuer", []byte(canary)); err != nil {
		t.Fatal(err)
	}
	var f struct{ Sealed, Nonce []byte }
	if err := json.Unmarshal(p.file(), &f); err != nil {
		t.Fatal(err)
	}
	for _, v := range slices.Concat(encodings(canary), encodings("openai-of-work"), encodings("oauth/issuer")) {
		if bytes.Contains(p.file(), []byte(v)) || bytes.Contains(f.Sealed, []byte(v)) {
			t.Errorf("the file has %q", v)
		}
	}
	// Each time with another nonce: the same content never looks the same.
	before := p.file()
	p.set("openai-of-work", "something-else")
	p.set("openai-of-work", canary)
	var g struct{ Sealed, Nonce []byte }
	if err := json.Unmarshal(p.file(), &g); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before, p.file()) || bytes.Equal(f.Nonce, g.Nonce) {
		t.Error("a nonce was used twice")
	}
}

// Any modification of the file or its key is an error that names file and remedy; no
// value is returned, and nothing is overwritten, even by a change.
func TestTampering(t *testing.T) {
	change := func(edit func(m map[string]any)) func(*place) {
		return func(p *place) {
			var m map[string]any
			if err := json.Unmarshal(p.file(), &m); err != nil {
				p.t.Fatal(err)
			}
			edit(m)
			raw, err := json.Marshal(m)
			if err != nil {
				p.t.Fatal(err)
			}
			p.write(raw)
		}
	}
	flip := func(key string, i int) func(*place) {
		return change(func(m map[string]any) {
			raw, _ := base64.StdEncoding.DecodeString(m[key].(string))
			raw[(i+len(raw))%len(raw)] ^= 1
			m[key] = base64.StdEncoding.EncodeToString(raw)
		})
	}
	for name, c := range map[string]struct {
		do   func(*place)
		want []string
	}{
		"a bit of the seal":                  {flip("sealed", 3), []string{File, "damaged", "restore", "move it away"}},
		"a bit of the tag":                   {flip("sealed", -1), []string{"damaged"}},
		"a bit of the nonce":                 {flip("nonce", 0), []string{"damaged"}},
		"another key id":                     {flip("key_id", 0), []string{KeyFile, "not the one"}},
		"another kind of key":                {change(func(m map[string]any) { m["key"] = "keychain" }), []string{"keychain"}},
		"an unknown kind of key":             {change(func(m map[string]any) { m["key"] = "none" }), []string{"damaged", `"none"`}},
		"parameters beside a file":           {change(func(m map[string]any) { m["argon2id"] = map[string]any{} }), []string{"damaged"}},
		"a newer version":                    {change(func(m map[string]any) { m["version"] = 2 }), []string{File, "newer yaya"}},
		"a member that is unknown":           {change(func(m map[string]any) { m["more"] = 1 }), []string{"damaged", "more"}},
		"a short nonce":                      {change(func(m map[string]any) { m["nonce"] = "AAAA" }), []string{"damaged"}},
		"nothing sealed":                     {change(func(m map[string]any) { m["sealed"] = "" }), []string{"damaged"}},
		"half of it":                         {func(p *place) { p.write(p.file()[:len(p.file())/2]) }, []string{"damaged"}},
		"an empty file":                      {func(p *place) { p.write(nil) }, []string{"damaged"}},
		"two documents":                      {func(p *place) { p.write(append(p.file(), p.file()...)) }, []string{"damaged"}},
		"a huge file":                        {func(p *place) { p.write(bytes.Repeat([]byte(" "), maxFile+1)) }, []string{File, "larger"}},
		"a link":                             {func(p *place) { p.link(filepath.Join(p.data, File)) }, []string{File, "link"}},
		"a link in its folder":               {func(p *place) { p.near(filepath.Join(p.data, File)) }, []string{File, "link"}},
		"the key is gone":                    {func(p *place) { p.remove(p.keyPath()) }, []string{KeyFile, "restore it", "--config-dir"}},
		"the folder of the key":              {func(p *place) { p.remove(p.keyPath()); p.remove(p.key) }, []string{KeyFile, "restore it"}},
		"another key":                        {func(p *place) { p.writeKey(base64.StdEncoding.EncodeToString(make([]byte, 32)), 0o600) }, []string{KeyFile, "not the one"}},
		"a key that is damaged":              {func(p *place) { p.writeKey("AAAA", 0o600) }, []string{KeyFile, "damaged"}},
		"a key that is not base64":           {func(p *place) { p.writeKey(strings.Repeat("!", 44), 0o600) }, []string{KeyFile, "damaged"}},
		"a key for the group":                {func(p *place) { p.chmodKey(0o640) }, []string{KeyFile, "chmod 600"}},
		"a key for all":                      {func(p *place) { p.chmodKey(0o604) }, []string{KeyFile, "chmod 600"}},
		"a key that is a link":               {func(p *place) { p.link(p.keyPath()) }, []string{KeyFile, "link"}},
		"a key that is a link in its folder": {func(p *place) { p.near(p.keyPath()) }, []string{KeyFile, "link"}},
		"a key that is a folder":             {func(p *place) { p.remove(p.keyPath()); p.mkdir(p.keyPath()) }, []string{KeyFile, "not a regular file"}},
		"a file of another folder":           {func(p *place) { q := newPlace(p.t); q.set("x", canary); p.write(q.file()) }, []string{KeyFile, "not the one"}},
		"an older file of this one":          {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.set("x", canary)
			if c.do == nil { // its seal is whole: a backup that was put back
				old := p.file()
				p.set("y", canary)
				p.write(old)
				p.want("x", canary)
				return
			}
			c.do(p)
			before := p.all()
			s := p.store()
			v, err := s.Get("x")
			_, lerr := s.List()
			_, serr := s.Set("x", "another-value")
			_, rerr := s.Remove("x")
			perr := s.PutRecord("r", []byte("data"))
			for i, err := range []error{err, lerr, serr, rerr, perr} {
				for _, want := range c.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("call %d: %v, want %q", i, err, want)
					}
				}
				if err != nil && strings.Contains(err.Error(), canary) {
					t.Errorf("the error has the value: %v", err)
				}
			}
			if v != "" {
				t.Errorf("Get = %q, want nothing", v)
			}
			if after := p.all(); !reflect.DeepEqual(before, after) {
				t.Errorf("files are %v, want them as they were: %v", after, before)
			}
		})
	}
}

func (p *place) keyPath() string { return filepath.Join(p.key, KeyFile) }

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) write(data []byte)      { p.must(os.WriteFile(filepath.Join(p.data, File), data, 0o600)) }
func (p *place) remove(path string)     { p.must(os.Remove(path)) }
func (p *place) mkdir(path string)      { p.must(os.Mkdir(path, 0o700)) }
func (p *place) chmodKey(m os.FileMode) { p.must(os.Chmod(p.keyPath(), m)) }
func (p *place) writeKey(text string, m os.FileMode) {
	p.must(os.WriteFile(p.keyPath(), []byte(text), m))
}

// link moves a file away and puts a link to it in its place.
func (p *place) link(path string) {
	away := filepath.Join(p.t.TempDir(), "away")
	p.must(os.Rename(path, away))
	p.must(os.Symlink(away, path))
}

// near is link within the folder.
func (p *place) near(path string) {
	p.must(os.Rename(path, path+".away"))
	p.must(os.Symlink(filepath.Base(path)+".away", path))
}

// all are the files, with their content and mode; the lock is not one.
func (p *place) all() map[string]string {
	out := map[string]string{}
	for _, dir := range []string{p.data, p.key} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || e.Name() == lockFile {
				return nil //nolint:nilerr // a folder that is gone
			}
			st, err := os.Lstat(path)
			if err != nil {
				return err
			}
			data, _ := os.ReadFile(path)
			out[path] = fmt.Sprintf("%v %d %.100x", st.Mode(), len(data), data)
			return nil
		})
		p.must(err)
	}
	return out
}

func TestPassphrase(t *testing.T) {
	p := newPlace(t)
	p.passphrase("correct horse battery\n")
	p.set("x", canary)
	p.want("x", canary)
	if _, err := os.Stat(p.keyPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was written beside the passphrase: %v", err)
	}
	for name, c := range map[string]struct {
		phrase string
		want   []string
	}{
		"none":      {"-", []string{File, PassphraseVariable}},
		"a wrong":   {"wrong horse battery", []string{"not the one", File, "passphrase"}},
		"a short":   {"short", []string{PassphraseVariable, "at least"}},
		"an empty":  {"\n", []string{PassphraseVariable, "at least"}},
		"a huge":    {strings.Repeat("p", maxPhrase+1), []string{PassphraseVariable, "larger"}},
		"a missing": {"", []string{PassphraseVariable, "no such file"}},
	} {
		before := p.file()
		q := *p
		switch c.phrase {
		case "-":
			q.o.Passphrase = ""
		case "":
			q.o.Passphrase = "/nonexistent/passphrase"
		default:
			q.passphrase(c.phrase)
		}
		_, gerr := q.store().Get("x")
		_, serr := q.store().Set("x", "another-value")
		for _, err := range []error{gerr, serr} {
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "horse") {
					t.Errorf("with %s passphrase: %v, want %q", name, err, want)
				}
			}
		}
		if !bytes.Equal(before, p.file()) {
			t.Errorf("with %s passphrase: the file was overwritten", name)
		}
	}
	p.want("x", canary)
}

// Deriving a key from a passphrase uses the cost that RFC 9106 recommends, which is
// stored in the file.
func TestPassphraseCost(t *testing.T) {
	p := newPlace(t)
	p.o.cost = kdf{}
	p.passphrase("correct horse battery")
	p.set("x", canary)
	h, _, err := parse(p.file())
	if err != nil || h.KDF == nil || h.KDF.Passes != 3 || h.KDF.Memory != 64<<10 || h.KDF.Lanes != 4 || len(h.KDF.Salt) != 16 {
		t.Errorf("the parameters are %+v, %v", h.KDF, err)
	}
	p.want("x", canary)
}

// A writer of the file cannot make yaya use up memory or time.
func TestPassphraseParametersAreBounded(t *testing.T) {
	p := newPlace(t)
	p.passphrase("correct horse battery")
	p.set("x", canary)
	for name, c := range map[string]struct {
		key   string
		value any
	}{
		"much memory": {"memory_kib", maxMemory + 1}, "little memory": {"memory_kib", minMemory - 1}, "no passes": {"passes", 0}, "many passes": {"passes", maxPasses + 1},
		"no lanes": {"lanes", 0}, "many lanes": {"lanes", maxLanes + 1}, "a short salt": {"salt", "AAAA"}, "more lanes than a byte": {"lanes", 300}, "negative passes": {"passes", -1},
	} {
		var m map[string]any
		p.must(json.Unmarshal(p.file(), &m))
		m["argon2id"].(map[string]any)[c.key] = c.value
		raw, err := json.Marshal(m)
		p.must(err)
		if _, _, err := parse(raw); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A file that was made without a passphrase moves to it with the next change.
func TestMoveToPassphrase(t *testing.T) {
	p := newPlace(t)
	p.set("x", canary)
	p.passphrase("correct horse battery")
	p.want("x", canary)
	p.set("y", "another-value")
	p.remove(p.keyPath())
	p.want("x", canary)
	p.want("y", "another-value")
	if kind, err := p.store().Kind(); err != nil || kind != "the passphrase" {
		t.Errorf("Kind = %q, %v", kind, err)
	}
}

// fake is a keychain in memory.
type fake struct {
	mu    sync.Mutex
	m     map[string]string
	fails map[string]error // by call
	calls []string
}

func (k *fake) call(what, account string) error {
	k.calls = append(k.calls, what)
	return k.fails[what]
}

func (k *fake) Get(_ context.Context, account string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.call("get", account); err != nil {
		return "", err
	}
	v, ok := k.m[account]
	if !ok {
		return "", fs.ErrNotExist
	}
	return v, nil
}

func (k *fake) Set(_ context.Context, account, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.call("set", account); err != nil {
		return err
	}
	k.m[account] = value
	return nil
}

func (k *fake) Delete(_ context.Context, account string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.m, account)
	return k.call("delete", account)
}

func TestKeychain(t *testing.T) {
	p := newPlace(t)
	k := &fake{m: map[string]string{}}
	p.o.Keychain = k
	p.set("x", canary)
	p.want("x", canary)
	if _, err := os.Stat(p.keyPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was written beside the keychain: %v", err)
	}
	if len(k.m) != 1 {
		t.Errorf("the keychain has %v, want the key alone: the probe is gone", k.m)
	}
	for _, v := range k.m {
		if strings.Contains(v, "canary") {
			t.Errorf("the keychain has the secret itself: %q", v)
		}
	}
	// One process asks once, however often secrets are used.
	s := p.store()
	k.calls = nil
	for range 3 {
		if _, err := s.Get("x"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Set("x", canary); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.calls) != 1 {
		t.Errorf("the keychain was asked %v, want once", k.calls)
	}
	before := p.file()
	for name, c := range map[string]struct {
		do   func(q *place)
		want string
	}{
		"is locked":   {func(q *place) { q.o.Keychain = &fake{m: k.m, fails: map[string]error{"get": errors.New("locked")}} }, "locked"},
		"has nothing": {func(q *place) { q.o.Keychain = &fake{m: map[string]string{}} }, "does not give it"},
		"has another key": {func(q *place) {
			q.o.Keychain = &fake{m: map[string]string{p.store().account(): base64.StdEncoding.EncodeToString(make([]byte, 32))}}
		}, "another key"},
		"has no key":  {func(q *place) { q.o.Keychain = &fake{m: map[string]string{p.store().account(): "x"}} }, "not a key"},
		"is not used": {func(q *place) { q.o.Keychain = nil }, "--data-dir"},
	} {
		q := *p
		c.do(&q)
		_, gerr := q.store().Get("x")
		_, serr := q.store().Set("x", "another-value")
		for _, err := range []error{gerr, serr} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the keychain %s: %v, want %q", name, err, c.want)
			}
		}
	}
	if !bytes.Equal(before, p.file()) {
		t.Error("the file was overwritten")
	}
}

// A keychain that fails any part of the probe is not used, and the key goes into its
// file.
func TestNoKeychain(t *testing.T) {
	for name, fails := range map[string]map[string]error{
		"that takes nothing": {"set": errors.New("no bus")}, "that gives nothing": {"get": errors.New("no bus")}, "that keeps forever": {"delete": errors.New("no bus")},
	} {
		p := newPlace(t)
		p.o.Keychain = &fake{m: map[string]string{}, fails: fails}
		p.set("x", canary)
		p.want("x", canary)
		if kind, err := p.store().Kind(); err != nil || kind != p.keyPath() {
			t.Errorf("a keychain %s: Kind = %q, %v, want %s", name, kind, err, p.keyPath())
		}
	}
}

// Several data folders may have one configuration folder, and so one key, whoever comes first.
func TestSharedKey(t *testing.T) {
	places := make([]*place, 8)
	for i := range places {
		places[i] = newPlace(t)
		places[i].o.KeyDir, places[i].key = places[0].key, places[0].key
	}
	var work sync.WaitGroup
	for _, p := range places {
		work.Go(func() {
			if _, err := p.store().Set("x", canary); err != nil {
				t.Errorf("Set = %v", err)
			}
		})
	}
	work.Wait()
	for _, p := range places {
		p.want("x", canary)
	}
}

// Changes by several processes at the same time are all there afterwards, and each sees
// those of the others.
func TestConcurrentChanges(t *testing.T) {
	p := newPlace(t)
	p.o.Learn = nil
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			s := p.store()
			for j := range 5 {
				if _, err := s.Set(fmt.Sprintf("n%d.%d", i, j), canary); err != nil {
					t.Errorf("Set = %v", err)
				}
			}
		})
	}
	work.Wait()
	s := p.store()
	if all, err := s.List(); err != nil || len(all) != 40 {
		t.Errorf("List has %d, %v, want 40", len(all), err)
	}
	p.set("late", "another-value")
	if v, err := s.Get("late"); err != nil || v != "another-value" {
		t.Errorf("Get of what another process has set = %q, %v", v, err)
	}
}

// Every value is made known before anybody gets it.
func TestLearn(t *testing.T) {
	p := newPlace(t)
	pem := "-----BEGIN KEY-----\nfirst-line-of-the-key-0123\nsecond-line-of-the-key-45\n-----END KEY-----"
	p.set("x", canary)
	p.set("pem", pem)
	p.learnt = nil
	if _, err := p.store().List(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"pem=" + pem, "x=" + canary}; !slices.Equal(p.learnt, want) {
		t.Errorf("learnt %q, want %q", p.learnt, want)
	}
}

func TestRecords(t *testing.T) {
	p := newPlace(t)
	if data, at, err := p.store().Record("oauth/x"); data != nil || !at.IsZero() || err != nil {
		t.Errorf("Record of nothing = %q, %v, %v", data, at, err)
	}
	p.must(p.store().PutRecord("oauth/x", []byte(canary)))
	data, at, err := p.store().Record("oauth/x")
	if string(data) != canary || at.IsZero() || err != nil {
		t.Errorf("Record = %q, %v, %v", data, at, err)
	}
	if all, err := p.store().List(); len(all) != 0 || err != nil {
		t.Errorf("List = %v, %v, want no record", all, err)
	}
	if err := p.store().PutRecord("x", make([]byte, maxRecord+1)); err == nil {
		t.Error("a record that is too large was taken")
	}
	if found, err := p.store().DeleteRecord("oauth/x"); !found || err != nil {
		t.Errorf("DeleteRecord = %v, %v", found, err)
	}
	if found, err := p.store().DeleteRecord("oauth/x"); found || err != nil {
		t.Errorf("DeleteRecord again = %v, %v", found, err)
	}
}

// A full disk, or a read-only folder, is an error, and the previous content stays.
func TestFailedWrite(t *testing.T) {
	p := newPlace(t)
	p.set("x", canary)
	before := p.file()
	// In the place of the temporary file stands a folder that is not empty.
	tmp := filepath.Join(p.data, fmt.Sprintf(".%s.%d.tmp", File, os.Getpid()))
	p.mkdir(tmp)
	p.mkdir(filepath.Join(tmp, "x"))
	if _, err := p.store().Set("x", "another-value"); err == nil || !strings.Contains(err.Error(), File) {
		t.Errorf("Set = %v, want that %s cannot be written", err, File)
	}
	if !bytes.Equal(before, p.file()) {
		t.Error("the file was overwritten")
	}
	p.want("x", canary)
}

// Any file is read within bounds, or refused; and only sealed values are ever returned.
func FuzzFile(f *testing.F) {
	key := make([]byte, 32)
	h := header{Version: version, Key: keyFile, ID: idOf(key)}
	whole, err := seal(h, &document{Secrets: map[string]secret{"x": {Value: canary}}, Records: map[string]record{}}, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(`{"version":1,"key":"passphrase","key_id":"AAAAAAAAAAA=","argon2id":{"salt":"AAAAAAAAAAAAAAAAAAAAAA==","passes":4294967295,"memory_kib":4294967295,"lanes":255},"nonce":"","sealed":""}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"VERSION":1,"version":1,"sealed":"AA=="}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, box, err := parse(data)
		if err != nil {
			return
		}
		if k := h.KDF; k != nil && (k.Memory > maxMemory || k.Passes > maxPasses || k.Lanes > maxLanes) {
			t.Fatalf("parameters out of bounds were accepted: %+v", k)
		}
		d, err := open(h, box, key)
		if err == nil && (len(d.Secrets) != 1 || d.Secrets["x"].Value != canary) {
			t.Errorf("a file that was never sealed was opened: %v", d)
		}
	})
}
