package daemon

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// profilesKey is the setting that holds the profiles of MCP clients: one value, or one
// table a profile.
const profilesKey = "plugin.mcp_bridge.profiles"

func profiles(settings *config.Store) (map[string]downstream.Profile, error) {
	groups, err := settings.Groups()
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]json.RawMessage{}
	if raw, _, ok := settings.Get(profilesKey); ok {
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, fmt.Errorf("%s: %w", profilesKey, err)
		}
	}
	for _, v := range settings.All(profilesKey + ".") {
		name, field, _ := strings.Cut(strings.TrimPrefix(v.Key, profilesKey+"."), ".")
		if field == "" {
			var whole map[string]json.RawMessage
			if err := json.Unmarshal(v.Value, &whole); err != nil {
				return nil, fmt.Errorf("%s: %w", v.Key, err)
			}
			all[name] = whole
			continue
		}
		if all[name] == nil {
			all[name] = map[string]json.RawMessage{}
		}
		all[name][field] = v.Value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return parseProfiles(raw, groups)
}

func parseProfiles(raw json.RawMessage, groups map[string][]string) (map[string]downstream.Profile, error) {
	out, err := downstream.ParseProfiles(raw, approval.Callers{Groups: groups, Scopes: auth.ScopeNames()})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", profilesKey, err)
	}
	return out, nil
}
