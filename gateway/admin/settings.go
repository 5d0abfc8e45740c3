package admin

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
)

// Setting is a key of the configuration with what there is to say about it.
type Setting struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value,omitempty" doc:"masked if it is a secret; absent if the key has none"`
	Origin string          `json:"origin,omitempty" doc:"flag, environment, set, file or default"`
	Doc    string          `json:"doc,omitempty"`
	// Type and those below are known of the kernel's own keys.
	Type    string          `json:"type,omitempty" enum:"text,number,boolean,duration,list,json" doc:"of its value; absent for keys of plugins"`
	Choices []string        `json:"choices,omitempty" doc:"its only values"`
	Default json.RawMessage `json:"default,omitempty"`
	Unset   string          `json:"unset,omitempty" doc:"what holds while it has no value"`
	Waits   bool            `json:"waits,omitempty" doc:"the value holds from the next start of yaya on; what it started with holds until then"`
}

type (
	InKey struct {
		Key string `path:"key" maxLength:"600"`
	}
	inShownKey struct {
		InKey
		Show bool `query:"show" doc:"1 shows secrets; it needs config:write, and is audited"`
	}
	outSetting struct {
		Body struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		}
	}
	outSet struct {
		Body struct {
			Key string `json:"key"`
			OK  bool   `json:"ok"`
		}
	}
	outUnset struct {
		Body struct {
			Key     string `json:"key"`
			Removed bool   `json:"removed"`
		}
	}
)

func (a *API) settingsRoutes() {
	r := routes{a, "config", a.cfg.Settings != nil, "configuration"}
	handle(r, "GET", "/api/config", "listConfig", api.For(auth.ConfigRead), "Get the configuration, with secrets masked", http.StatusOK, func(context.Context, *none) (*struct {
		Body map[string]json.RawMessage
	}, error,
	) {
		out := map[string]json.RawMessage{}
		for _, v := range a.cfg.Settings.All("") {
			out[v.Key] = config.Mask(v.Key, v.Value)
		}
		return &struct{ Body map[string]json.RawMessage }{out}, nil
	})
	handle(r, "GET", "/api/settings", "describeConfig", api.For(auth.ConfigRead), "List settings with the source of each value, including the kernel's unset keys", http.StatusOK, func(context.Context, *none) (*struct{ Body []Setting }, error) {
		return &struct{ Body []Setting }{a.settings()}, nil
	})
	noted(r, "`show=1` needs `config:write`, too", "GET", "/api/config/{key}", "getConfig", api.For(auth.ConfigRead), "Get one value, masked if it is a secret", http.StatusOK, func(ctx context.Context, in *inShownKey) (*outSetting, error) {
		v, _, ok := a.cfg.Settings.Get(in.Key)
		if !ok {
			return nil, api.Fail(http.StatusNotFound, "the key %q has no value", in.Key)
		}
		if !in.Show {
			v = config.Mask(in.Key, v)
		} else if err := a.mayShow(ctx, in.Key); err != nil {
			return nil, err
		} else if v, err = a.cfg.Settings.Shown(in.Key, v); err != nil {
			return nil, api.Fail(http.StatusConflict, "%v", err)
		}
		out := new(outSetting)
		out.Body.Key, out.Body.Value = in.Key, v
		return out, nil
	})
	handle(r, "PATCH", "/api/config/{key}", "setConfig", api.For(auth.ConfigWrite), "Set a value; a returned masked value changes nothing", http.StatusOK, func(ctx context.Context, in *struct {
		InKey
		Body struct {
			Value json.RawMessage `json:"value"`
		}
	},
	) (*outSet, error) {
		if err := a.checkSetting(in.Key, in.Body.Value); err != nil {
			return nil, api.Fail(http.StatusBadRequest, "%v", err)
		}
		if err := a.keepsSecrets(map[string]json.RawMessage{in.Key: in.Body.Value}); err != nil {
			return nil, err
		}
		out := new(outSet)
		out.Body.Key, out.Body.OK = in.Key, true
		return out, a.set(ctx, "config_changed", in.Key, nil, map[string]json.RawMessage{in.Key: in.Body.Value})
	})
	handle(r, "DELETE", "/api/config/{key}", "unsetConfig", api.For(auth.ConfigWrite), "Unset a value that was set here", http.StatusOK, func(ctx context.Context, in *struct {
		InKey
		Below bool `query:"below" doc:"1 takes back all keys below this one instead"`
	},
	) (*outUnset, error) {
		if !config.ValidKey(in.Key) {
			return nil, api.Fail(http.StatusBadRequest, "%q cannot be a key", in.Key)
		}
		gone := map[string]json.RawMessage{in.Key: nil}
		if in.Below {
			gone = map[string]json.RawMessage{}
			for _, v := range a.cfg.Settings.All(in.Key + ".") {
				gone[v.Key] = nil
			}
			in.Key += ".*"
		}
		if err := a.keepsSecrets(gone); err != nil {
			return nil, err
		}
		out := new(outUnset)
		out.Body.Key = in.Key
		if !a.cfg.Settings.Holds(in.Key) { // nothing changes, and the audit does not say that it did
			return out, nil
		}
		if err := a.audited(ctx, "config_removed", in.Key, nil); err != nil {
			return nil, err
		}
		var err error
		out.Body.Removed, err = a.cfg.Settings.Unset(in.Key)
		return out, err
	})
}

// set sets the keys that do not have their values yet, in the order of their names, and puts
// that into the audit before. If all have them, nothing changes, and the audit says nothing.
func (a *API) set(ctx context.Context, event, target string, payload any, values map[string]json.RawMessage) error {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(k string) bool { return a.cfg.Settings.Same(k, values[k]) })
	if len(keys) == 0 {
		return nil
	}
	if err := a.audited(ctx, event, target, payload); err != nil {
		return err
	}
	for _, k := range keys {
		if err := a.cfg.Settings.Set(k, values[k]); err != nil {
			return err
		}
	}
	return nil
}

// keepsSecrets refuses changes that would send a secret elsewhere than it was entered
// for: it can be removed first, or entered together with its address.
func (a *API) keepsSecrets(changes map[string]json.RawMessage) error {
	if err := a.cfg.Settings.CheckSecrets(changes); err != nil {
		return api.Fail(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// checkSetting refuses what cannot be kept, and rules that would deny everything
// because they cannot be read.
func (a *API) checkSetting(key string, v json.RawMessage) error {
	if err := config.CheckValue(key, v); err != nil {
		return err
	}
	err := kernel.CheckSetting(a.cfg.Settings, auth.ScopeNames(), key, v)
	if err == nil && a.cfg.CheckSetting != nil {
		err = a.cfg.CheckSetting(key, v)
	}
	if err == nil && a.cfg.Plugins != nil {
		err = a.cfg.Plugins.CheckSetting(key, v)
	}
	return err
}

func (a *API) settings() []Setting {
	out := []Setting{}
	for _, v := range a.cfg.Settings.All("") {
		out = append(out, Setting{Key: v.Key, Value: config.Mask(v.Key, v.Value), Origin: string(v.Origin)})
	}
	for _, key := range a.cfg.Settings.Waiting() {
		if i := slices.IndexFunc(out, func(s Setting) bool { return s.Key == key }); i >= 0 {
			out[i].Waits = true
		}
	}
	for _, k := range config.Keys {
		i := slices.IndexFunc(out, func(s Setting) bool { return s.Key == k.Name })
		if i < 0 {
			i, out = len(out), append(out, Setting{Key: k.Name})
		}
		s := &out[i]
		s.Doc, s.Type, s.Choices, s.Unset = k.Doc, k.Type(), k.Choices(), k.Unset()
		if k.Default != "" {
			s.Default = json.RawMessage(k.Default)
		}
	}
	return out
}
