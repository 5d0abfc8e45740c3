package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Secrets move from each kind of key to each, are complete afterwards, and the previous
// key opens nothing.
func TestRekey(t *testing.T) {
	from := map[string]func(p *place){
		"the key file":   func(*place) {},
		"the keychain":   func(p *place) { p.o.Keychain = &fake{m: map[string]string{}} },
		"the passphrase": func(p *place) { p.passphrase("correct horse battery") },
	}
	for name, prepare := range from {
		for _, to := range []string{"a fresh key", "a fresh key again", "a passphrase"} {
			t.Run(name+" to "+to, func(t *testing.T) {
				p := newPlace(t)
				prepare(p)
				p.set("x", canary)
				p.must(p.store().PutRecord("r", []byte("data")))
				before, was := p.file(), *p
				file := ""
				if to == "a passphrase" {
					file = filepath.Join(t.TempDir(), "new")
					p.must(os.WriteFile(file, []byte("another horse battery\n"), 0o600))
				}
				left, err := p.store().Rekey(t.Context(), file)
				if want := name == "the key file"; err != nil || (left != "") != want {
					t.Fatalf("Rekey leaves %q, %v, want the shared key file alone: %v", left, err, want)
				}
				if p.o.Passphrase = file; to == "a fresh key again" {
					if left, err := p.store().Rekey(t.Context(), ""); err != nil || left != "" {
						t.Fatalf("Rekey again leaves %q, %v", left, err)
					}
				}
				p.want("x", canary)
				if data, _, err := p.store().Record("r"); err != nil || string(data) != "data" {
					t.Errorf("Record = %q, %v", data, err)
				}
				p.set("y", "another-value") // goes on with the new key
				p.want("y", "another-value")
				if keys, err := filepath.Glob(filepath.Join(p.key, "secrets-*.key")); err != nil || len(keys) > 1 {
					t.Errorf("the keys are %v, %v, want at most one", keys, err)
				}
				if k, ok := p.o.Keychain.(*fake); ok && len(k.m) > 1 {
					t.Errorf("the keychain has %v, want at most one key", k.m)
				}
				if name == "the keychain" { // its old key is gone
					was.write(before)
					if _, err := was.store().Get("x"); err == nil {
						t.Error("the old key opens the old file")
					}
				}
			})
		}
	}
	p := newPlace(t)
	if _, err := p.store().Rekey(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "nothing is sealed") {
		t.Errorf("Rekey of nothing = %v", err)
	}
}

// broken is a keychain that keeps the probe alone.
type broken struct{ fake }

func (k *broken) Set(ctx context.Context, account, value string) error {
	if !strings.HasPrefix(account, "probe ") {
		return errors.New("it is full")
	}
	return k.fake.Set(ctx, account, value)
}

// Wherever rekeying ends early, the secrets are there, with the keys that are there.
func TestRekeyFails(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(p *place)
		file   string
	}{
		"the passphrase is not there": {func(*place) {}, "/nonexistent/passphrase"},
		"the file cannot be written": {func(p *place) {
			tmp := filepath.Join(p.data, fmt.Sprintf(".%s.%d.tmp", File, os.Getpid()))
			p.mkdir(tmp)
			p.mkdir(filepath.Join(tmp, "x"))
		}, ""},
		"the key cannot be written": {func(p *place) {
			p.o.Keychain = &broken{fake{m: map[string]string{}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.set("x", canary)
			before := p.file()
			c.breaks(p)
			if _, err := p.store().Rekey(t.Context(), c.file); err == nil {
				t.Error("Rekey reports no error")
			}
			if string(p.file()) != string(before) {
				t.Error("the file was overwritten")
			}
			p.want("x", canary)
			if keys, err := filepath.Glob(filepath.Join(p.key, "secrets-*.key")); err != nil || len(keys) > 0 {
				t.Errorf("the keys are %v, %v, want none that nothing needs", keys, err)
			}
		})
	}
	// A process that died before the file was replaced leaves a key that nothing needs; one
	// that died after that, the old key beside the new. Both open, and both rekey again.
	p := newPlace(t)
	p.set("x", canary)
	s := p.store()
	h, key, _, err := s.nextKey(t.Context(), "")
	p.must(err)
	p.want("x", canary)
	now, _, err := s.current(t.Context())
	p.must(err)
	p.must(s.replace(now.clone(), h, key))
	p.want("x", canary)
	_, err = p.store().Rekey(t.Context(), "")
	p.must(err)
	p.want("x", canary)
}

// If the key that Rekey created is lost, the error names it: the previous key opens
// nothing.
func TestLostKeyIsNamed(t *testing.T) {
	p := newPlace(t)
	p.set("x", canary)
	left, err := p.store().Rekey(t.Context(), "")
	p.must(err)
	keys, err := filepath.Glob(filepath.Join(p.key, "secrets-*.key"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("the keys are %v, %v, want one", keys, err)
	}
	p.must(os.Remove(keys[0]))
	for _, old := range []string{"there", "gone"} {
		if _, err := p.store().Get("x"); err == nil || !strings.Contains(err.Error(), filepath.Base(keys[0])+", if yaya secret rekey made it") {
			t.Errorf("with the old key %s: got %v, want the name of the lost one", old, err)
		}
		_ = os.Remove(left)
	}
}
