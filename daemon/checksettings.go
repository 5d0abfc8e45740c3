package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/strategy_coder"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
	"github.com/yaya-ai/yaya/plugins/tool_workspace"
)

// Settings of all sandboxes.
const (
	SandboxMode    = "sandbox.mode"
	SandboxBackend = "sandbox.backend"
)

// backendSetting refuses a back end that makes no sandbox here.
func backendSetting(key string, v json.RawMessage) error {
	if key != SandboxBackend {
		return nil
	}
	var name string
	err := json.Unmarshal(v, &name)
	if err == nil {
		err = sandbox.CheckBackend(name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// issuerSetting refuses an authorization server, or an audience, with which yaya would not start.
func issuerSetting(key string, v json.RawMessage) error {
	if key != "auth.issuer" && key != "auth.audience" {
		return nil
	}
	var u string
	err := json.Unmarshal(v, &u)
	if err == nil && u != "" {
		err = auth.CheckURL(u)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// SettingChecker refuses values that only this program knows to be wrong; this yaya
// listens there.
func SettingChecker(s *config.Store, listens []string) func(string, json.RawMessage) error {
	return func(key string, v json.RawMessage) error {
		return errors.Join(checkProfile(s, key, v), commandSetting(listens, key, v), backendSetting(key, v), issuerSetting(key, v), registriesSetting(key, v), sourceSetting(key, v), logSetting(key, v), otelSetting(key, v), embeddingsSetting(s, key, v), llm_echo.CheckSetting(s, key, v), bundledSetting(key, v))
	}
}

// Strategies are the ids of those that come with yaya.
func Strategies() []string {
	return []string{(*strategy_react.Plugin)(nil).Manifest().StrategyID, (*strategy_coder.Plugin)(nil).Manifest().StrategyID}
}

func noStrategy(id string) error {
	return fmt.Errorf("there is no strategy %q%s", id, members.Among(id, Strategies()))
}

// bundledSetting refuses what does not fit the schema of a bundled plugin, whether it is loaded or not.
func bundledSetting(key string, v json.RawMessage) error {
	for _, p := range []interface{ Manifest() plugin.Manifest }{(*strategy_react.Plugin)(nil), (*strategy_coder.Plugin)(nil), (*tool_shell.Plugin)(nil), (*tool_workspace.Plugin)(nil)} {
		if err := plugin.CheckSetting(p.Manifest(), key, v); err != nil {
			return err
		}
	}
	return nil
}

// checkProfile refuses a value in the profiles that would keep all of them from being
// read. It looks at that value alone, so that of several mistakes each can be corrected.
func checkProfile(s *config.Store, key string, v json.RawMessage) error {
	below, ok := strings.CutPrefix(key, profilesKey)
	if !ok || (below != "" && below[0] != '.') {
		return nil
	}
	groups, err := s.Groups()
	if err != nil {
		return err
	}
	if below != "" {
		name, field, nested := strings.Cut(below[1:], ".")
		if nested {
			if v, err = json.Marshal(map[string]json.RawMessage{field: v}); err != nil {
				return err
			}
		}
		if v, err = json.Marshal(map[string]json.RawMessage{name: v}); err != nil {
			return err
		}
	}
	_, err = parseProfiles(v, groups)
	return err
}

// unreadable returns the mistakes in the settings that say who may do what. Meanwhile
// what they would allow is refused.
func unreadable(s *config.Store, listens []string) (out []error) {
	for _, m := range mistakes(s, listens) {
		out = append(out, m.err)
	}
	return out
}

// unruled returns the mistakes in rules about tool calls, with which all calls would be refused.
func unruled(s *config.Store, file string) error {
	var all []error
	for _, m := range mistakes(s, nil) {
		if strings.HasPrefix(m.key, "approval.") {
			all = append(all, fmt.Errorf("%w (correct it in %s, or with yaya config set %s)", m.err, file, m.key))
		}
	}
	return errors.Join(all...)
}

// mistake is one in a setting.
type mistake struct {
	key string
	err error
}

// mistakes returns those of a yaya that listens at these addresses.
func mistakes(s *config.Store, listens []string) (out []mistake) {
	for _, key := range []string{commandHosts, commandWrite} {
		value, _, ok := s.Get(key)
		if !ok {
			continue
		}
		if err := commandSetting(listens, key, value); err != nil {
			out = append(out, mistake{key, err})
		}
	}
	scripts := llm_echo.Mistakes(s)
	for _, key := range slices.Sorted(maps.Keys(scripts)) {
		out = append(out, mistake{key, scripts[key]})
	}
	before := len(out)
	for _, v := range s.All(config.GroupsPrefix) {
		if err := kernel.CheckSetting(s, auth.ScopeNames(), v.Key, v.Value); err != nil {
			out = append(out, mistake{v.Key, err})
		}
	}
	if len(out) > before { // rules and profiles only repeat them
		return out
	}
	if rules, _, ok := s.Get("approval.rules"); ok {
		if err := kernel.CheckSetting(s, auth.ScopeNames(), "approval.rules", rules); err != nil {
			out = append(out, mistake{"approval.rules", err})
		}
	}
	if _, err := profiles(s); err != nil {
		m := mistake{profilesKey, err}
		for _, v := range s.All(profilesKey) {
			if checkProfile(s, v.Key, v.Value) != nil {
				m.key = v.Key
				break
			}
		}
		out = append(out, m)
	}
	return out
}
