package servers

import (
	"encoding/json"
	"fmt"
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
	value, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return patch(file, data, fmt.Sprintf(`[{"op":"add","path":%s,"value":%s}]`, pointer(s.Name), value))
}

// Unset returns the content of a JSON configuration file without a server, and
// whether it was there.
func Unset(file string, data []byte, name string) ([]byte, bool, error) {
	doc, err := Decode(file, data)
	if err != nil {
		return nil, false, err
	}
	m, _ := doc["mcpServers"].(map[string]any)
	if _, ok := m[name]; !ok {
		return data, false, nil
	}
	out, err := patch(file, data, fmt.Sprintf(`[{"op":"remove","path":%s}]`, pointer(name)))
	return out, err == nil, err
}

func pointer(name string) string {
	p, _ := json.Marshal("/mcpServers/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	return string(p)
}

func patch(file string, data []byte, ops string) ([]byte, error) {
	if len(strings.TrimSpace(string(data))) == 0 {
		data = []byte("{}")
	}
	doc, err := Decode(file, data)
	if err != nil {
		return nil, err
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if doc["mcpServers"] == nil {
		if err := v.Patch([]byte(`[{"op":"add","path":"/mcpServers","value":{}}]`)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := v.Patch([]byte(ops)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	v.Format()
	return v.Pack(), nil
}
