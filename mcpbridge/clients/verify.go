package clients

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// split returns a document without yaya's entry, and that entry. An empty object of servers
// counts as absent.
func (c Client) split(data []byte) (rest map[string]any, own any, err error) {
	rest, err = servers.Decode(c.file(), data)
	if err != nil {
		return nil, nil, err
	}
	switch top := rest[c.top].(type) {
	case map[string]any:
		own = top[servers.OwnName]
		delete(top, servers.OwnName)
		if len(top) == 0 {
			delete(rest, c.top)
		}
	case []any:
		kept := []any{}
		for _, v := range top {
			if obj, ok := v.(map[string]any); ok && obj["name"] == servers.OwnName {
				own = obj
				continue
			}
			kept = append(kept, v)
		}
		rest[c.top] = kept
		if len(kept) == 0 {
			delete(rest, c.top)
		}
	case nil:
		delete(rest, c.top)
	}
	return rest, own, nil
}

// onlyOurs fails if an edit has changed more than yaya's entry.
func (c Client) onlyOurs(before, after []byte) error {
	was, _, err := c.split(before)
	if err != nil {
		return err
	}
	is, _, err := c.split(after)
	if err != nil || !reflect.DeepEqual(was, is) {
		return fmt.Errorf("yaya cannot edit the file of %s without changing other parts of it; change its %q by hand", c.Name, c.top)
	}
	return nil
}

// says reports whether yaya's entry in a file equals m.
func (c Client) says(data []byte, m members) (bool, error) {
	_, own, err := c.split(data)
	if err != nil {
		return false, err
	}
	have, err := json.Marshal(own)
	if err != nil {
		return false, err
	}
	want, err := json.Marshal(m.plain())
	return string(have) == string(want), err
}

// plain returns m in the form in which decoders return objects.
func (m members) plain() map[string]any {
	out := map[string]any{}
	for _, x := range m {
		if inner, ok := x.value.(members); ok {
			out[x.key] = inner.plain()
			continue
		}
		out[x.key] = x.value
	}
	return out
}
