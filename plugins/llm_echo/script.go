package llm_echo //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Script describes the model's behavior. Steps is short for a scenario that matches everything.
type Script struct {
	Scenarios []Scenario `json:"scenarios,omitempty"`
	Steps     []Step     `json:"steps,omitempty"`
}

// Scenario is a sequence of steps for the messages that Match, a regular expression, matches.
// After its last step, the model echoes.
type Scenario struct {
	Match string `json:"match"`
	Steps []Step `json:"steps"`

	match *regexp.Regexp
}

// Step describes one model call: it fails with Error, or answers Text and calls tools.
type Step struct {
	Text      string     `json:"text,omitempty"`
	ToolCalls []Call     `json:"tool_calls,omitempty"`
	Error     *StepError `json:"error,omitempty"`
	// StopReason is why the answer ends, as the service would say it. Default "end", or
	// "tool_calls" with calls.
	StopReason event.StopReason `json:"stop_reason,omitempty"`
	// DelayMS is the delay before each chunk. The text is split into Chunks pieces, or into
	// words if Chunks is 0.
	DelayMS int `json:"delay_ms,omitempty"`
	Chunks  int `json:"chunks,omitempty"`
}

// Call is a tool call. Args may be any JSON, even arguments that no tool accepts.
type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// StepError describes the failure of a call.
type StepError struct {
	Kind        event.LLMErrorKind `json:"kind"`
	StatusCode  int                `json:"status_code,omitempty"`
	RetryAfterS float64            `json:"retry_after_s,omitempty"`
	Message     string             `json:"message"`
	// AfterText makes the call fail only after the text was streamed.
	AfterText bool `json:"after_text,omitempty"`
}

// ParseScript reads a script: a JSON object, or a string that contains one, as in config.toml.
// Unknown members are errors.
func ParseScript(raw []byte) (Script, error) {
	var s Script
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if raw = []byte(text); !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return Script{}, fmt.Errorf("script: %.100q is not a JSON object: give the script itself, not the name of a file (\"$(cat FILE)\" in a shell)", text)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(&s)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Script{}, fmt.Errorf("script: %s cannot be of type %s", cmp.Or(e.Field, "it"), e.Value)
	}
	if err != nil {
		return Script{}, fmt.Errorf("script: not a script in JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Script{}, errors.New("script: something follows the JSON object")
	}
	if len(s.Steps) > 0 {
		s.Scenarios = append(s.Scenarios, Scenario{Steps: s.Steps})
	}
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		var err error
		if sc.match, err = regexp.Compile(sc.Match); err != nil {
			return Script{}, fmt.Errorf("script: scenario %d: %w", i+1, err)
		}
		for n, step := range sc.Steps {
			if step.Error != nil && !slices.Contains(errorKinds, step.Error.Kind) {
				return Script{}, fmt.Errorf("script: scenario %d, step %d: the kind of an error is one of %s, not %.40q", i+1, n+1, errorKinds, step.Error.Kind)
			}
			if !slices.Contains(stopReasons, step.StopReason) {
				return Script{}, fmt.Errorf("script: scenario %d, step %d: stop_reason is one of %s, not %.40q", i+1, n+1, stopReasons[1:], step.StopReason)
			}
		}
	}
	return s, nil
}

var stopReasons = []event.StopReason{"", event.StopEnd, event.StopToolCalls, event.StopLength, event.StopRefusal}

var errorKinds = []event.LLMErrorKind{event.LLMConnection, event.LLMTimeout, event.LLMStatus, event.LLMEmpty, event.LLMOther}

// scriptKey is the setting of the script of all instances.
const scriptKey = "plugin.llm_echo.script"

// CheckSetting returns an error if a setting of s is a script and the value is invalid.
func CheckSetting(s *config.Store, key string, v json.RawMessage) error {
	of, script := strings.CutSuffix(strings.TrimPrefix(key, "providers."), ".script")
	switch {
	case strings.HasPrefix(key, scriptKey+"."):
		return fmt.Errorf("%s is not a setting: %s is a single value; in config.toml, write it as a string in three quotes: script = '''{\"steps\": […]}'''", key, scriptKey)
	case key == scriptKey:
	case strings.HasPrefix(key, "providers.") && script && s.Text("providers."+of+".plugin") == Name:
	default:
		return nil
	}
	if _, err := ParseScript(v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// Mistakes returns the unusable settings of scripts, with the reasons.
func Mistakes(s *config.Store) map[string]error {
	out := map[string]error{}
	for _, prefix := range []string{scriptKey, "providers."} {
		for _, v := range s.All(prefix) {
			if err := CheckSetting(s, v.Key, v.Value); err != nil {
				out[v.Key] = err
			}
		}
	}
	return out
}
