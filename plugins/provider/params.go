package provider

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/event"
)

// The settings of an instance that are sent with each request which does not say otherwise.
const (
	maxTokensField   = "max_tokens" //nolint:gosec // the name of a setting
	temperatureField = "temperature"
)

// maxAnswer excludes mistakes, in tokens.
const maxAnswer = 10_000_000

// params are those of an instance, as members of a request's params.
type params map[string]json.RawMessage

// paramsOf reads them. at begins the name of the setting in the error.
func paramsOf(field func(string) json.RawMessage, at string) (params, error) {
	out := params{}
	for name, ok := range map[string]func(float64) bool{
		maxTokensField:   func(x float64) bool { return x >= 1 && x <= maxAnswer && x == math.Trunc(x) },
		temperatureField: func(x float64) bool { return x >= 0 && x <= 2 },
	} {
		raw := field(name)
		if raw == nil {
			continue
		}
		var x float64
		if json.Unmarshal(raw, &x) != nil || string(raw) == "null" || !ok(x) {
			want := fmt.Sprintf("a whole number of tokens from 1 to %d", maxAnswer)
			if name == temperatureField {
				want = "a number from 0 to 2"
			}
			return nil, fmt.Errorf("%s%s must be %s, not %s", at, name, want, cut.Text(string(raw), 60))
		}
		out[name] = raw
	}
	return out, nil
}

// with returns a request with the params of the instance that it lacks. Params that are not an
// object stay as they are: the client says so.
func (p params) with(r event.LLMRequest) event.LLMRequest {
	if len(p) == 0 {
		return r
	}
	all := params{}
	if len(r.Params) > 0 && json.Unmarshal(r.Params, &all) != nil {
		return r
	}
	if all == nil {
		all = params{}
	}
	for name, v := range p {
		if _, there := all[name]; there || (name == maxTokensField && all["max_completion_tokens"] != nil) {
			continue
		}
		all[name] = v
	}
	raw, err := json.Marshal(all)
	if err != nil { // the members are JSON
		return r
	}
	r.Params = raw
	return r
}
