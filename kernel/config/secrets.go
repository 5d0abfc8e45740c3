package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/masked"
)

var (
	secretNames  = []string{"api_key", "token", "secret", "password"}
	addressNames = []string{"url", "uri", "endpoint", "host", "hostname", "address", "addr", "server", "proxy", "port"}
)

// ends reports whether the last part of a key is one of the names, or ends in one.
func ends(key string, names []string) bool {
	last := strings.ToLower(key[strings.LastIndexByte(key, '.')+1:])
	return slices.ContainsFunc(names, func(n string) bool {
		rest, ok := strings.CutSuffix(last, n)
		return ok && (rest == "" || strings.HasSuffix(rest, "_") || strings.HasSuffix(rest, "-"))
	})
}

// secret reports whether a key's value must not be shown.
func secret(key string) bool { return ends(key, secretNames) }

// IsSecret reports whether a key is named like one whose value must not be shown: its last part
// ends in api_key, token, secret or password.
func IsSecret(key string) bool { return secret(key) }

// Literals returns the keys of secrets for which a value of a key contains the secret itself,
// at any depth, sorted: neither a reference nor a mask, and not empty.
func Literals(key string, v json.RawMessage) []string {
	x, err := decode(v)
	if err != nil {
		return nil
	}
	var out []string
	var find func(key string, x any)
	find = func(key string, x any) {
		if secret(key) {
			s, isText := x.(string)
			if x == nil || isText && (s == "" || s == masked.Mask || secretRef().MatchString(s)) {
				return
			}
			out = append(out, key)
			return
		}
		switch x := x.(type) {
		case map[string]any:
			for k, v := range x {
				find(key+"."+k, v)
			}
		case []any:
			for _, v := range x {
				find(key, v)
			}
		}
	}
	find(key, x)
	slices.Sort(out)
	return slices.Compact(out)
}

// address reports whether a key's value is an address to which yaya sends data.
func address(key string) bool { return ends(key, addressNames) }

// decode reads a value and keeps numbers as written.
func decode(v json.RawMessage) (x any, err error) {
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	err = dec.Decode(&x)
	return x, err
}

// Mask returns a value for display: it hides the value of a key whose last part ends
// in api_key, token, secret or password, and every such member inside a value. An
// empty value stays empty, because the fact that it is unset is public, and a
// reference to one of the user's own secrets stays.
func Mask(key string, v json.RawMessage) json.RawMessage {
	hidden := json.RawMessage(`"` + masked.Mask + `"`)
	x, err := decode(v)
	if err != nil {
		return hidden
	}
	out, err := json.Marshal(mask(key, x))
	if err != nil {
		return hidden
	}
	return out
}

// mask returns a copy of x for display.
func mask(key string, x any) any {
	if secret(key) {
		if x == "" || x == nil {
			return x
		}
		if s, ok := x.(string); ok && isSecretRef(s) && !isStowed(key, s) {
			return x
		}
		return masked.Mask
	}
	switch x := x.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, v := range x {
			out[k] = mask(k, v)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = mask("", v)
		}
		return out
	}
	return x
}

// Secrets returns the values in force that yaya must hide wherever they appear.
func (s *Store) Secrets() []string {
	var out []string
	var find func(key string, x any)
	find = func(key string, x any) {
		switch x := x.(type) {
		case string:
			if secret(key) && x != "" && !isSecretRef(x) {
				out = append(out, x)
			}
		case map[string]any:
			for k, v := range x {
				find(k, v)
			}
		case []any:
			for _, v := range x {
				find("", v)
			}
		}
	}
	for _, v := range s.All("") {
		if x, err := decode(v.Value); err == nil {
			find(v.Key, x)
		}
	}
	return out
}

// holds reports whether a value contains a secret or a reference to one, which reaches the
// same destination.
func holds(key string, v json.RawMessage) bool {
	x, err := decode(v)
	return err != nil || !reflect.DeepEqual(mask(key, x), x) || len(secretsIn(v)) > 0
}

// unmask returns the value that a key gets when next is written, with the key's
// present secrets in place of masks, and whether that value is already in force. live
// is the live part; s.mu is held, or live is a copy.
func (s *Store) unmask(live values, key string, next json.RawMessage) (v json.RawMessage, same bool, err error) {
	if !bytes.Contains(next, []byte(masked.Mask)) {
		return next, false, nil
	}
	wanted, err := decode(next)
	if err != nil {
		return nil, false, err
	}
	var now any
	if old, ok := s.inForce(live, key); ok {
		if now, err = decode(old); err != nil {
			return nil, false, err
		}
		// A masked value that comes back unchanged changes nothing, whichever layer holds
		// it.
		if shown := mask(key, now); !reflect.DeepEqual(shown, now) && reflect.DeepEqual(shown, wanted) {
			return nil, true, nil
		}
	}
	if wanted, _, err = unmask(key, key, wanted, now); err != nil {
		return nil, false, err
	}
	v, err = json.Marshal(wanted)
	return v, false, err
}

// inForce returns the value of a key, with that live part.
func (s *Store) inForce(live values, key string) (json.RawMessage, bool) {
	s.cache.RLock()
	defer s.cache.RUnlock()
	for _, l := range []values{s.flags, s.env, live, s.file} {
		if v, ok := l[key]; ok {
			return v, true
		}
	}
	return nil, false
}

// unmask replaces masks in wanted by the present secrets, and reports whether there
// were any. at names the place for errors.
func unmask(at, key string, wanted, now any) (v any, kept bool, err error) {
	if secret(key) {
		s, ok := wanted.(string)
		switch {
		case !ok || !masked.Is(s):
			return wanted, false, nil
		case s == masked.Mask && mask(key, now) == any(masked.Mask):
			return now, true, nil
		}
		return nil, false, fmt.Errorf("%s is masked, and no secret is known for it; enter the secret", at)
	}
	switch w := wanted.(type) {
	case map[string]any:
		return unmaskObject(at, w, now)
	case []any:
		n, _ := now.([]any)
		for i := range w {
			var old any
			if i < len(n) {
				old = n[i]
			}
			place := fmt.Sprintf("%s.%d", at, i)
			one, k, err := unmask(place, "", w[i], old)
			if err != nil {
				return nil, false, err
			}
			// Elements have no names: a changed one may be a different one.
			if k && !reflect.DeepEqual(mask("", old), mask("", one)) {
				return nil, false, moved("a secret in "+place, place)
			}
			w[i], kept = one, kept || k
		}
		return w, kept, nil
	}
	return wanted, false, nil
}

func unmaskObject(at string, w map[string]any, now any) (v any, kept bool, err error) {
	n, _ := now.(map[string]any)
	var secrets []string // that were kept
	for _, k := range slices.Sorted(maps.Keys(w)) {
		v, yes, err := unmask(at+"."+k, k, w[k], n[k])
		if err != nil {
			return nil, false, err
		}
		if w[k] = v; yes {
			secrets = append(secrets, k)
		}
	}
	for _, k := range secrets {
		for a := range mergedKeys(n, w) {
			if a != k && address(a) && !reflect.DeepEqual(n[a], w[a]) {
				return nil, false, moved(at+"."+k, at+"."+a)
			}
		}
	}
	return w, len(secrets) > 0, nil
}

// mergedKeys returns the keys of both maps.
func mergedKeys[V any](a, b map[string]V) map[string]bool {
	out := map[string]bool{}
	for _, m := range []map[string]V{a, b} {
		for k := range m {
			out[k] = true
		}
	}
	return out
}

func moved(secret, address string) error {
	return fmt.Errorf("%s was entered for another %s; enter the secret again together with it, or remove the secret first", secret, address)
}

// CheckSecrets returns an error if changes must not be made together; a nil value
// removes a key. It refuses changes that would send a secret to another address
// than it was entered for, or store a mask as a secret.
func (s *Store) CheckSecrets(changes map[string]json.RawMessage) error {
	s.cache.RLock()
	live := maps.Clone(s.live)
	s.cache.RUnlock()
	after := maps.Clone(live)
	if after == nil {
		after = values{}
	}
	entered := map[string]bool{}
	for _, k := range slices.Sorted(maps.Keys(changes)) {
		if changes[k] == nil {
			delete(after, k)
			continue
		}
		v, same, err := s.unmask(live, k, changes[k])
		switch {
		case err != nil:
			return err
		case !same:
			after[k] = v
			entered[k] = !bytes.Contains(changes[k], []byte(masked.Mask))
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(changes)), func(k string) bool { return address(k) || secret(k) || strings.HasSuffix(k, ".plugin") }) {
		return nil
	}
	was, is, without := s.everything(live), s.everything(after), s.everything(nil)
	for _, k := range slices.Sorted(maps.Keys(is)) {
		if !holds(k, is[k]) || (entered[k] && bytes.Equal(is[k], after[k])) {
			continue
		}
		// An existing secret keeps its destination. One that takes effect because a
		// stronger layer was removed goes where it would go if nothing had been set.
		before := was
		if !bytes.Equal(was[k], is[k]) {
			before = without
		}
		from, to := destination(before, k), destination(is, k)
		for _, a := range slices.Sorted(maps.Keys(mergedKeys(from, to))) {
			if from[a] != to[a] {
				return moved(k, a)
			}
		}
	}
	return nil
}

// everything returns the values in force, given that live part.
func (s *Store) everything(live values) values {
	s.cache.RLock()
	defer s.cache.RUnlock()
	out := values{}
	for _, l := range []values{s.file, live, s.env, s.flags} { // the weakest first
		maps.Copy(out, l)
	}
	return out
}

// destination returns the settings that determine where the secret of a key goes:
// the addresses beside it; for a provider also its plugin, and those addresses of
// the plugin that the provider does not set.
func destination(all values, key string) map[string]string {
	out := map[string]string{}
	parts := strings.SplitN(key, ".", 3)
	if len(parts) < 3 || (parts[0] != "providers" && parts[0] != "plugin") {
		return out
	}
	own := parts[0] + "." + parts[1] + "."
	add := func(prefix string) {
		for k, v := range all {
			rest, ok := strings.CutPrefix(k, prefix)
			if _, has := all[own+rest]; ok && address(rest) && (prefix == own || !has) {
				out[k] = place(v)
			}
		}
	}
	add(own)
	if parts[0] != "providers" {
		return out
	}
	out[own+"plugin"] = string(all[own+"plugin"])
	var plugin string
	if json.Unmarshal(all[own+"plugin"], &plugin) == nil && plugin != "" {
		add("plugin." + Namespace(plugin) + ".")
	}
	return out
}

// place normalizes an address, so that another spelling is not a change.
func place(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return s
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	return u.String()
}
