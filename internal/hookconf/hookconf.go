// Package hookconf reads the files that configure hooks: yaya's hooks.toml, and the hooks in
// settings.json of Claude Code. The content comes from others: it is bounded in size and number,
// and a file with a mistake is refused as a whole, since a guard that is left out guards
// nothing. The package opens no files.
package hookconf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/yaya-ai/yaya/internal/worded"
)

// Event is when a hook runs.
type Event string

// The events.
const (
	SessionStart Event = "session_start"
	Prompt       Event = "prompt"
	PreTool      Event = "pre_tool"
	PostTool     Event = "post_tool"
	PreCompact   Event = "pre_compact"
	TurnEnd      Event = "turn_end"
	Approval     Event = "approval"
	ServerState  Event = "server_state"
)

// Events are all events.
var Events = []Event{SessionStart, Prompt, PreTool, PostTool, PreCompact, TurnEnd, Approval, ServerState}

// ofTools reports whether an event is about one tool.
func (e Event) ofTools() bool { return e == PreTool || e == PostTool || e == Approval }

// Bounds of a file.
const (
	MaxFile        = 1 << 20 // bytes
	maxHooks       = 100
	maxCommand     = 4 << 10 // bytes; a question about a folder shows all of it
	maxTool        = 1 << 10
	maxName        = 60
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 5 * time.Minute
)

// Hook is one configured hook.
type Hook struct {
	Name    string        `json:"name"`
	Event   Event         `json:"event"`
	Tool    string        `json:"tool,omitempty"` // which tools; "" is all
	Command string        `json:"command"`
	Timeout time.Duration `json:"-"`
	// Claude says that it speaks the protocol of Claude Code.
	Claude bool   `json:"claude,omitempty"`
	File   string `json:"file"`
	// Root is the folder of the package that has the hook, and a variable of its command; "" without one.
	Root string `json:"-"`

	matches func(names []string) bool
}

// Matches reports whether the hook is for a tool that has these names.
func (h Hook) Matches(names ...string) bool { return h.matches == nil || h.matches(names) }

// file is hooks.toml.
type file struct {
	Hooks []struct {
		Name    string `toml:"name"`
		Event   string `toml:"event"`
		Tool    string `toml:"tool"`
		Command string `toml:"command"`
		Timeout string `toml:"timeout"`
	} `toml:"hooks"`
}

// Parse reads a hooks.toml; name is its path.
func Parse(data []byte, name string) ([]Hook, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, MaxFile)
	}
	var f file
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&f); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
			return nil, worded.Error(err, "%s: there is no member %q; hooks have name, event, tool, command, timeout", name, strings.Join(strict.Errors[0].Key(), "."))
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := few(len(f.Hooks), name); err != nil {
		return nil, err
	}
	var out []Hook
	for i, x := range f.Hooks {
		h := Hook{Name: cmp.Or(x.Name, fmt.Sprintf("%s %d", x.Event, i+1)), Event: Event(x.Event), Tool: x.Tool, Command: x.Command, Timeout: DefaultTimeout, File: name}
		if x.Timeout != "" {
			d, err := time.ParseDuration(x.Timeout)
			if err != nil {
				return nil, fmt.Errorf("%s: hook %q: timeout: %w", name, h.Name, err)
			}
			h.Timeout = d
		}
		if err := h.check(); err != nil {
			return nil, fmt.Errorf("%s: hook %q: %w", name, h.Name, err)
		}
		if x.Tool != "" {
			h.matches = globs(x.Tool)
		}
		if slices.ContainsFunc(out, func(o Hook) bool { return o.Name == h.Name }) {
			return nil, fmt.Errorf("%s: two hooks are named %q", name, h.Name)
		}
		out = append(out, h)
	}
	return out, nil
}

func few(hooks int, name string) error {
	if hooks > maxHooks {
		return fmt.Errorf("%s has %d hooks, %d at most", name, hooks, maxHooks)
	}
	return nil
}

func (h Hook) check() error {
	switch {
	case !slices.Contains(Events, h.Event):
		return fmt.Errorf("unknown event %q: it is one of %v", h.Event, Events)
	case h.Tool != "" && !h.Event.ofTools():
		return fmt.Errorf("tool is for pre_tool, post_tool and approval, not for %s", h.Event)
	case len(h.Tool) > maxTool:
		return fmt.Errorf("tool has more than %d bytes", maxTool)
	case strings.TrimSpace(h.Command) == "":
		return errors.New("command is missing")
	case len(h.Command) > maxCommand || strings.ContainsRune(h.Command, 0):
		return fmt.Errorf("command has more than %d bytes, or a NUL", maxCommand)
	case len(h.Name) > maxName || strings.ContainsFunc(h.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("name has more than %d bytes, or a control character", maxName)
	case h.Timeout <= 0 || h.Timeout > MaxTimeout:
		return fmt.Errorf("timeout is not between 0 and %v", MaxTimeout)
	}
	return nil
}

// globs matches names against patterns with * between |.
func globs(pattern string) func([]string) bool {
	var parts []string
	for _, p := range strings.Split(pattern, "|") {
		parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(p)), `\*`, ".*"))
	}
	re := regexp.MustCompile("^(?:" + strings.Join(parts, "|") + ")$")
	return func(names []string) bool { return slices.ContainsFunc(names, re.MatchString) }
}

// ofClaude maps the events of Claude Code. Others have no counterpart.
var ofClaude = map[string]Event{
	"SessionStart": SessionStart, "UserPromptSubmit": Prompt, "PreToolUse": PreTool, "PostToolUse": PostTool, "PostToolUseFailure": PostTool,
	"PreCompact": PreCompact, "Stop": TurnEnd, "SubagentStop": TurnEnd, "PermissionRequest": Approval,
}

// ClaudeName is the name of an event in the protocol of Claude Code.
func ClaudeName(e Event) string {
	return map[Event]string{
		SessionStart: "SessionStart", Prompt: "UserPromptSubmit", PreTool: "PreToolUse", PostTool: "PostToolUse",
		PreCompact: "PreCompact", TurnEnd: "Stop", Approval: "PermissionRequest",
	}[e]
}

// ParseClaude reads the hooks of a settings.json of Claude Code; name is its path. ignored are
// those that yaya cannot run. One that guards calls is never ignored: then the file is refused.
func ParseClaude(data []byte, name string) (out []Hook, ignored []string, err error) {
	if len(data) > MaxFile {
		return nil, nil, fmt.Errorf("%s has more than %d bytes", name, MaxFile)
	}
	var f struct {
		Hooks map[string][]claudeGroup `json:"hooks"`
		Off   bool                     `json:"disableAllHooks"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if f.Off {
		return nil, nil, nil
	}
	all := 0
	for _, groups := range f.Hooks {
		for _, group := range groups {
			all += len(group.Hooks)
		}
	}
	if err := few(all, name); err != nil {
		return nil, nil, err
	}
	for _, e := range slices.Sorted(maps.Keys(f.Hooks)) {
		n := 0
		for _, group := range f.Hooks[e] {
			for _, x := range group.Hooks {
				n++
				h, runs, err := x.hook(ofClaude[e], group.Matcher)
				h.Name, h.File = fmt.Sprintf("%s %d", e, n), name
				if err == nil && runs {
					err = h.check()
				}
				switch {
				case err != nil:
					return nil, nil, fmt.Errorf("%s: hook %q: %w", name, h.Name, err)
				case runs:
					out = append(out, h)
				default:
					ignored = append(ignored, h.Name)
				}
			}
		}
	}
	return out, ignored, nil
}

// claudeGroup is hooks of one event with one matcher.
type claudeGroup struct {
	Matcher string       `json:"matcher"`
	Hooks   []claudeHook `json:"hooks"`
}

type claudeHook struct {
	Type    string  `json:"type"`
	Command string  `json:"command"`
	Timeout float64 `json:"timeout"`
}

// hook returns the hook, and whether yaya runs it: not if its event has no counterpart, or it is
// not a command, which is an error for one that guards calls.
func (x claudeHook) hook(event Event, matcher string) (h Hook, runs bool, err error) {
	h = Hook{Event: event, Command: x.Command, Claude: true, Timeout: time.Minute}
	switch {
	case x.Type != "command" && event == PreTool:
		return h, false, fmt.Errorf("it guards calls and has the type %q, which yaya does not run", x.Type)
	case x.Type != "command" || event == "":
		return h, false, nil
	}
	if x.Timeout > 0 {
		h.Timeout = min(time.Duration(min(x.Timeout, 1e6)*float64(time.Second)), MaxTimeout)
	}
	if matcher == "" || matcher == "*" || !event.ofTools() {
		return h, true, nil
	}
	if len(matcher) > maxTool {
		return h, false, fmt.Errorf("matcher has more than %d bytes", maxTool)
	}
	if _, err := regexp.Compile(matcher); err != nil { // alone: parentheses must not close the group below
		return h, false, fmt.Errorf("matcher: %w", err)
	}
	re, err := regexp.Compile("^(?:" + matcher + ")$")
	if err != nil {
		return h, false, fmt.Errorf("matcher: %w", err)
	}
	h.Tool, h.matches = matcher, func(names []string) bool { return slices.ContainsFunc(names, re.MatchString) }
	return h, true, nil
}
