package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// values are flat keys with JSON values.
type values map[string]json.RawMessage

// parseTOML reads a configuration file. Tables become dotted keys; a key that
// nobody knows is an error that names its line.
func parseTOML(name string, data []byte) (values, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: %d bytes, %d at most", name, len(data), MaxFile)
	}
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		if d, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, col := d.Position()
			return nil, fmt.Errorf("%s:%d:%d: %w", name, line, col, err)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := values{}
	if err := flatten(out, "", doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(out) > maxKeys {
		return nil, fmt.Errorf("%s: %d keys, %d at most", name, len(out), maxKeys)
	}
	for key, v := range out {
		if err := CheckValue(key, v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, lineOf(data, key), err)
		}
	}
	return out, nil
}

func flatten(out values, prefix string, table map[string]any) error {
	for k, v := range table {
		key := prefix + k
		if strings.ContainsRune(k, '.') {
			return fmt.Errorf("%q: a key with a dot in quotes cannot be used", key)
		}
		if sub, ok := v.(map[string]any); ok {
			if err := flatten(out, key+".", sub); err != nil {
				return err
			}
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		out[key] = raw
	}
	return nil
}

// Line returns the line where a configuration file sets a key; 1 if it is unknown.
func Line(data []byte, key string) int { return lineOf(data, key) }

// lineOf finds the line where a dotted key is set; 1 if it is unknown.
func lineOf(data []byte, key string) int {
	p := unstable.Parser{}
	p.Reset(data)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		var parts []string
		line := 1
		for it := e.Key(); it.Next(); {
			n := it.Node()
			parts = append(parts, string(n.Data))
			line = p.Shape(n.Raw).Start.Line
		}
		name := strings.Join(parts, ".")
		switch e.Kind { //nolint:exhaustive // the other kinds are values
		case unstable.Table, unstable.ArrayTable:
			table = name + "."
			if name == key {
				return line
			}
		case unstable.KeyValue:
			if full := table + name; full == key || strings.HasPrefix(key, full+".") {
				return line
			}
		}
	}
	return 1
}

// EnvPrefix starts the names of environment variables that set keys: the rest
// is the key in capitals with "__" for each dot and "_" for each dash.
const EnvPrefix = "YAYA_"

// EnvName returns the name of the variable that sets a key.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "__", "-", "_").Replace(key))
}

// Remedy returns the command that gives a key a value, quoted for a shell, or the
// environment variable to change if one overrides the key.
func (s *Store) Remedy(key, value string) string {
	if _, from, _ := s.Get(key); from == FromEnv {
		return "start yaya again with " + EnvName(key) + "=" + value
	}
	return "yaya config set " + key + " " + value
}

// fromEnv reads the variables that set keys. known are existing keys, which resolve
// whether an underscore stands for a dash; a new key has underscores.
func fromEnv(env []string, known func(yield func(string) bool)) (values, error) {
	names := map[string]string{}
	for _, k := range Keys {
		names[EnvName(k.Name)] = k.Name
	}
	known(func(key string) bool {
		names[EnvName(key)] = key
		return true
	})
	out := values{}
	for _, kv := range env {
		name, text, ok := strings.Cut(kv, "=")
		if !ok || !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		key, ok := names[name]
		if !ok {
			if !strings.Contains(name, "__") {
				continue // not a key's name: a variable of another program
			}
			key = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, EnvPrefix)), "__", ".")
		}
		v := ParseValue(key, text)
		if err := CheckValue(key, v); err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", name, err)
		}
		out[key] = v
	}
	return out, nil
}

// ParseValue reads a value as a person typed it: as JSON if it is valid and the key
// does not want text, else as a string. A secret is always a string.
func ParseValue(key, s string) json.RawMessage {
	k, known := lookupKey(key)
	wantsText := secret(key) || (known && (k.kind == text || k.kind == duration))
	if json.Valid([]byte(s)) && (!wantsText || (strings.HasPrefix(s, `"`) && !secret(key))) {
		return json.RawMessage(s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}
