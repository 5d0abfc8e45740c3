package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Set returns the content of a JSON configuration file with server s added or replaced.
// Everything else stays, including comments and the unchanged parts of a replaced entry. Set
// rejects a masked value, which is not the secret.
func Set(file string, data []byte, s Server) ([]byte, error) {
	if err := s.checkMasks(); err != nil {
		return nil, fmt.Errorf("server %q: %w", s.Name, err)
	}
	if out, ok := amend(file, data, s); ok {
		return out, nil
	}
	return edit(file, data, func(l *layout, all *hujson.Object, indent string) error {
		return l.set(all, indent, s.Name, s)
	})
}

// amend is Set for an existing entry: it changes only the members that differ. ok is false if
// the result would not parse as s, for instance because the entry has members in another
// client's format.
func amend(file string, data []byte, s Server) (out []byte, ok bool) {
	was, found := entryOf(file, data, s.Name)
	if !found {
		return nil, false
	}
	old, err1 := membersIn(was)
	now, err2 := membersIn(s)
	if err1 != nil || err2 != nil {
		return nil, false
	}
	out, err := edit(file, data, func(l *layout, all *hujson.Object, indent string) error {
		i := member(all, s.Name)
		if own, lines := indentation(all.Members[i].Name.BeforeExtra); lines {
			indent = own
		}
		entry, ok := all.Members[i].Value.Value.(*hujson.Object)
		if !ok {
			return fmt.Errorf("%s: the entry of %q is not an object", file, s.Name)
		}
		return l.amend(entry, indent, old, now)
	})
	if err != nil {
		return nil, false
	}
	is, found := entryOf(file, out, s.Name)
	if !found {
		return nil, false
	}
	read, err := membersIn(is)
	return out, err == nil && reflect.DeepEqual(read, now)
}

// entryOf reads an entry of yaya's own format.
func entryOf(file string, data []byte, name string) (Server, bool) {
	cfg, err := Parse(file, data, FormatYaya)
	if err != nil {
		return Server{}, false
	}
	i := slices.IndexFunc(cfg.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return cfg.Servers[i], true
}

// membersIn returns the members of a server's entry in a file.
func membersIn(s Server) (map[string]any, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return out, d.Decode(&out)
}

// errOtherName says that a member has another client's name in the text.
var errOtherName = errors.New("a member has another name")

// amend changes an object that parses as old so that it parses as now.
func (l *layout) amend(in *hujson.Object, indent string, old, now map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, stays := now[name]; stays {
			continue
		}
		i := member(in, name)
		if i < 0 {
			return errOtherName
		}
		in.Members = slices.Delete(in.Members, i, i+1)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if reflect.DeepEqual(old[name], now[name]) {
			continue
		}
		if _, there := old[name]; there && member(in, name) < 0 {
			return errOtherName
		}
		was, wasObject := old[name].(map[string]any)
		is, isObject := now[name].(map[string]any)
		if below, ok := object(in, name); ok && wasObject && isObject {
			inner := indent + l.unit
			if own, lines := indentation(in.Members[member(in, name)].Name.BeforeExtra); lines {
				inner = own
			}
			if err := l.amend(below, inner, was, is); err != nil {
				return err
			}
			continue
		}
		if err := l.set(in, indent, name, now[name]); err != nil {
			return err
		}
	}
	return nil
}

// SetDisabled returns the content of a JSON configuration file with a server enabled or
// disabled, and whether the server is in the file. Nothing else changes.
func SetDisabled(file string, data []byte, name string, off bool) (out []byte, found bool, err error) {
	out, err = edit(file, data, func(l *layout, all *hujson.Object, indent string) error {
		i := member(all, name)
		if i < 0 {
			return nil
		}
		found = true
		entry, ok := all.Members[i].Value.Value.(*hujson.Object)
		if !ok {
			return fmt.Errorf("%s: the entry of %q is not an object", file, name)
		}
		if own, lines := indentation(all.Members[i].Name.BeforeExtra); lines {
			indent = own
		}
		enabled := member(entry, "enabled") >= 0
		if enabled {
			if err := l.set(entry, indent, "enabled", !off); err != nil {
				return err
			}
		}
		if (enabled || !off) && member(entry, "disabled") < 0 { // it says so already
			return nil
		}
		return l.set(entry, indent, "disabled", off)
	})
	if err != nil || !found {
		return data, found, err
	}
	return out, true, nil
}

// Unset returns the content of a JSON configuration file without a server, and whether it was
// in the file.
func Unset(file string, data []byte, name string) (out []byte, found bool, err error) {
	if doc, err := Decode(file, data); err != nil || doc[topKey] == nil {
		return data, false, err
	}
	out, err = edit(file, data, func(l *layout, all *hujson.Object, _ string) error {
		i := member(all, name)
		if found = i >= 0; !found {
			return nil
		}
		end := trailing(all.AfterExtra)
		if err := l.root.Patch(fmt.Appendf(nil, `[{"op":"remove","path":%s}]`, pointer(name))); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if i == len(all.Members) && bytes.IndexByte(end, '\n') >= 0 { // the brace keeps its position
			all.AfterExtra = slices.Concat(bytes.TrimRight(all.AfterExtra, blank), end)
		}
		return nil
	})
	if err != nil || !found {
		return data, false, err
	}
	return out, true, nil
}

func pointer(name string) string {
	p, _ := json.Marshal("/" + topKey + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	return string(p)
}

// edit changes the servers in the text of a file. indent is the indentation of the line on
// which their object begins.
func edit(file string, data []byte, change func(l *layout, all *hujson.Object, indent string) error) ([]byte, error) {
	if len(bytes.TrimSpace(bytes.TrimPrefix(data, bom))) == 0 {
		data = []byte("{\n}\n")
	}
	if _, err := Decode(file, data); err != nil {
		return nil, err
	}
	l, err := parseLayout(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	root := l.root.Value.(*hujson.Object) //nolint:forcetypeassert // parseLayout checked it
	if i := member(root, topKey); i < 0 || string(root.Members[i].Value.Pack()) == "null" {
		if err := l.set(root, "", topKey, struct{}{}); err != nil {
			return nil, err
		}
	}
	all, ok := object(root, topKey)
	if !ok {
		return nil, fmt.Errorf("%s: %q is not an object", file, topKey)
	}
	indent, _ := indentation(root.Members[member(root, topKey)].Name.BeforeExtra)
	if err := change(l, all, indent); err != nil {
		return nil, err
	}
	return l.bytes(), nil
}

const topKey = "mcpServers"
