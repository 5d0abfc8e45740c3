package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Vault keeps secrets outside the settings, which refer to them: ${secret:NAME}.
type Vault interface {
	// Get returns the value of a secret; the error says how to set it.
	Get(name string) (string, error)
	// Set gives a secret a value. The error wraps [ErrUnfit] if the vault does not
	// accept the value.
	Set(name, value string) error
	// Remove deletes a secret, if it is there.
	Remove(name string) error
}

// ErrUnfit is the error of a [Vault] about a value that it does not accept.
var ErrUnfit = errors.New("it cannot be kept as a secret")

// Keep sets the vault that stores secrets of providers and plugins from then on: a literal
// for a key that is named like a secret goes there, under the name of the key, and the
// settings hold a reference to it.
func (s *Store) Keep(v Vault) { s.vault = v }

var secretRef = lazyregexp.New(`\$\{secret:([^}]*)\}`)

var secretMark = []byte("${secret:")

// reference returns the form in which settings refer to a secret.
func reference(name string) string { return "${secret:" + name + "}" }

// isSecretRef reports whether a value is only a reference to a secret, which can be
// shown.
func isSecretRef(s string) bool { return secretRef().FindString(s) == s && s != "" }

// isStowed reports whether a reference replaced a literal of the key; key may be its last
// part only.
func isStowed(key, ref string) bool {
	name := secretRef().FindStringSubmatch(ref)[1]
	return name == key || strings.HasSuffix(name, "."+key)
}

// Shown returns the value of a key for somebody who may see its secrets. It shows a
// secret that was set as a literal; of the user's own secrets it shows only the names.
func (s *Store) Shown(key string, v json.RawMessage) (json.RawMessage, error) {
	if text, ok := textOf(v); ok && text == reference(key) {
		return s.Reveal(v)
	}
	return v, nil
}

// textOf returns the string in a value.
func textOf(v json.RawMessage) (text string, ok bool) {
	ok = json.Unmarshal(v, &text) == nil
	return text, ok
}

// literal returns v as the secret of a key that belongs in the vault, if it is one.
func (s *Store) literal(key string, v json.RawMessage) (text string, ok bool) {
	if !s.stowed(key) {
		return "", false
	}
	text, ok = textOf(v)
	return text, ok && text != "" && !secretRef().MatchString(text)
}

// stowed reports whether a literal secret of a key goes into the vault.
func (s *Store) stowed(key string) bool {
	return s.vault != nil && secret(key) && (strings.HasPrefix(key, "providers.") || strings.HasPrefix(key, "plugin."))
}

// stow puts a literal secret into the vault and returns the reference to it. A value
// that is not a secret, or that the vault does not accept, stays unchanged.
func (s *Store) stow(key string, v json.RawMessage) (json.RawMessage, error) {
	text, ok := s.literal(key, v)
	if !ok {
		return v, nil
	}
	switch err := s.vault.Set(key, text); {
	case errors.Is(err, ErrUnfit):
		return v, nil
	case err != nil:
		return nil, fmt.Errorf("%s is not changed, since its secret cannot be kept: %w", key, err)
	}
	return json.Marshal(reference(key))
}

// unstow deletes the secrets of keys that no longer refer to them, unless another key
// does.
func (s *Store) unstow(keys []string) error {
	if s.vault == nil {
		return nil
	}
	for _, key := range keys {
		if s.stowed(key) && len(s.Refer(key)) == 0 {
			if err := s.vault.Remove(key); err != nil {
				return fmt.Errorf("%s is changed, and its secret is left over: %w", key, err)
			}
		}
	}
	return nil
}

// StowSecrets moves the literal secrets of the live part into the vault, and returns the
// keys. It can be interrupted at any point and called again: a secret is in the vault
// before the settings refer to it.
func (s *Store) StowSecrets() (moved []string, err error) {
	s.cache.RLock()
	live := maps.Clone(s.live)
	s.cache.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if _, ok := s.literal(key, live[key]); !ok {
			continue
		}
		var done bool
		err := s.change(func(v values) error {
			if !sameValue(v[key], live[key]) { // another writer was faster
				return nil
			}
			ref, err := s.stow(key, v[key])
			if err == nil && !sameValue(ref, v[key]) {
				v[key], done = ref, true
			}
			return err
		})
		if err != nil {
			return moved, err
		}
		if done {
			moved = append(moved, key)
		}
	}
	return moved, nil
}

// Refer returns the keys whose values in any layer refer to a secret.
func (s *Store) Refer(name string) []string {
	s.cache.RLock()
	defer s.cache.RUnlock()
	found := map[string]bool{}
	for _, l := range s.layers() {
		for k, v := range l.values {
			if slices.Contains(secretsIn(v), name) {
				found[k] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// References returns the names of the secrets that the values in force refer to, with the
// keys that do.
func (s *Store) References() map[string][]string {
	out := map[string][]string{}
	for _, v := range s.All("") {
		for _, name := range secretsIn(v.Value) {
			out[name] = append(out[name], v.Key)
		}
	}
	return out
}

// SecretChanged notifies the users of a secret that its value has changed.
func (s *Store) SecretChanged(name string) error { return s.announce(s.Refer(name)) }

// SecretsIn returns the names of the secrets that a value of a setting refers to.
func SecretsIn(v json.RawMessage) []string { return secretsIn(v) }

// secretsIn returns the names of the secrets that a value refers to.
func secretsIn(v json.RawMessage) []string {
	if !bytes.Contains(v, secretMark) {
		return nil
	}
	var out []string
	for _, m := range secretRef().FindAllSubmatch(v, -1) {
		if name := string(m[1]); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Reveal returns a value with its secret references resolved. A value without
// references costs nothing.
func (s *Store) Reveal(v json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(v, secretMark) {
		return v, nil
	}
	x, err := decode(v)
	if err != nil {
		return nil, err
	}
	if x, err = s.reveal(x); err != nil {
		return nil, err
	}
	return json.Marshal(x)
}

func (s *Store) reveal(x any) (any, error) {
	switch x := x.(type) {
	case string:
		var failed error
		out := secretRef().ReplaceAllStringFunc(x, func(ref string) string {
			name := secretRef().FindStringSubmatch(ref)[1]
			v, err := "", fmt.Errorf("the secret %q cannot be used here", name)
			if s.vault != nil {
				v, err = s.vault.Get(name)
			}
			if err != nil && failed == nil {
				failed = err
			}
			return v
		})
		if failed != nil {
			return nil, failed
		}
		return out, nil
	case map[string]any:
		for k, v := range x {
			var err error
			if x[k], err = s.reveal(v); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, v := range x {
			var err error
			if x[i], err = s.reveal(v); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}
