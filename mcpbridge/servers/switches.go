package servers

import (
	"path/filepath"
	"slices"
	"strings"
)

// Switches returns the file, next to a client's file of servers, that lists the disabled
// servers; "" if the client has no separate file for them.
func (l Location) Switches() string {
	name := map[Format]string{FormatCopilotCLI: "settings.json", FormatGemini: "mcp-server-enablement.json"}[l.Format]
	if name == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(l.Path), name)
}

// SwitchOff disables the servers that a client's file of switches names, as a list or as an
// object per server that says whether it is enabled.
func (c *Config) SwitchOff(file string, data []byte) error {
	doc, err := Decode(file, data)
	if err != nil {
		return err
	}
	off := texts(doc["disabledMcpServers"])
	for name, v := range doc {
		if obj, ok := v.(map[string]any); ok && obj["enabled"] == false {
			off = append(off, name)
		}
	}
	for i := range c.Servers {
		s := &c.Servers[i]
		if !s.Disabled && slices.ContainsFunc(off, func(name string) bool { return strings.EqualFold(name, s.Name) }) {
			s.Disabled = true
			c.Changes = append(c.Changes, Change{s.Name, "switched off, as it is in " + filepath.Base(file)})
		}
	}
	return nil
}
