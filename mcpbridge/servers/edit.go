package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Set returns the content of a JSON configuration file with server s added or
// replaced. Everything else, comments included, stays. A masked value is refused: it
// is not the secret.
func Set(file string, data []byte, s Server) ([]byte, error) {
	if err := s.checkMasks(); err != nil {
		return nil, fmt.Errorf("server %q: %w", s.Name, err)
	}
	return edit(file, data, func(l *layout, all *hujson.Object, indent string) error {
		return l.set(all, indent, s.Name, s)
	})
}

// SetDisabled returns the content of a JSON configuration file with a server switched
// on or off, and whether the server is in the file. Nothing else changes.
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
		if enabled && member(entry, "disabled") < 0 {
			return nil
		}
		return l.set(entry, indent, "disabled", off)
	})
	if err != nil || !found {
		return data, found, err
	}
	return out, true, nil
}

// Unset returns the content of a JSON configuration file without a server, and
// whether it was there.
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
		if i == len(all.Members) && bytes.IndexByte(end, '\n') >= 0 { // the brace stays where it was
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

// edit changes the servers of a file in its text. indent is that of the line that their
// object stands on.
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
	root := l.root.Value.(*hujson.Object) //nolint:forcetypeassert // parseLayout has looked
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
