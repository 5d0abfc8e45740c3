package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a configuration (R31).
const (
	MaxFile  = 1 << 20  // bytes of the TOML file
	MaxValue = 64 << 10 // bytes of one value
	maxStore = 8 << 20  // bytes of the live part
	maxKeys  = 10_000
)

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) }) // long repetitions compile slowly

var keyPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,7}$`) })

// kind is the type of a kernel key.
type kind int

const (
	text kind = iota
	number
	boolean
	duration
	list
	count // a number from 0 on
	names // of environment variables
)

// Key is a key that the kernel knows.
type Key struct {
	Name    string
	Default string // JSON; "" for none
	Doc     string
	kind    kind
}

// Keys are the kernel's keys, with what they are by default.
var Keys = []Key{
	{"provider", "", "id of the active provider instance; unset: the first one, see yaya provider list", text},
	{"strategy", `"react"`, "id of the strategy that drives turns", text},
	{"approval.timeout", `"60s"`, "how long an ask waits for its answer", duration},
	{"approval.rules", "", "rules about tool calls, see docs/CONFIG.md", list},
	{"auth.issuer", "", "authorization server whose tokens MCP clients may use", text},
	{"auth.audience", "", "URL of the MCP endpoint that those tokens must be for", text},
	{"workspace.roots", "", "folders below which devices and other clients may have agents work", list},
	{"servers.pass_env", "", "variables of yaya's environment that every MCP server's process gets too", names},
	{"sandbox.mode", `"prefer"`, "what is enforced of a sandbox: prefer (all that this machine can), require (everything, or the program does not start) or off (nothing)", text},
	{"sandbox.backend", `"auto"`, "how sandboxes are made: auto, or one that yaya sandbox lists", text},
	{"sandbox.command.hosts", "", "hosts that agents' commands reach without an ask, such as example.com or *.example.com:8443", list},
	{"sandbox.command.write", "", "folders that agents' commands may write beside the workspace", list},
	{"wire.export", "", "names of tools that other kernels may invoke as skills", list},
	{"servers.max_message_bytes", `67108864`, "bytes of one message of an MCP server or client, from 1 MiB to 256 MiB", number},
	{"servers.tool_max_sec", "", "seconds that a call of an MCP server's tool may take in all, with progress", number},
	{"loop.max_iterations", `16`, "model calls in one turn", number},
	{"loop.llm_timeout", `"10m"`, "how long one model call may take", duration},
	{"compaction.enabled", `false`, "sum up long histories", boolean},
	{"compaction.threshold", `50000`, "tokens from which on to compact", number},
	{"compaction.target", `10000`, "tokens to come down to", number},
	{"compaction.tries", `3`, "attempts at a summary", number},
	{"session.heartbeat_timeout", `"60s"`, "when a silent connection is detached", duration},
	{"session.reap_interval", `"5s"`, "how often silence is looked for", duration},
	{"traffic.bodies", "", "calls whose arguments and results are recorded: off, errors or all; unset: all, and off once devices are enrolled, lasting tokens are out or auth.issuer is set", text},
	{"traffic.days", `7`, "how long calls are recorded; 0 records none", count},
	{"traffic.max_bytes", `268435456`, "how large the record of calls may be", number},
	{"plugins.max_failures", `3`, "consecutive failures that unload a plugin", number},
	{"plugins.handler_timeout", `"30s"`, "how long a plugin may handle one event", duration},
	{"agent_tool.max_depth", `5`, "how deep sub-agents may nest", number},
	{"agent_tool.max_wall", `"10m"`, "how long a sub-agent may take", duration},
}

// GroupsPrefix starts the keys that are groups of callers: lists of principals that
// rules and profiles name.
const GroupsPrefix = "approval.groups."

// free are the parts of the key space that belong to plugins.
var free = []string{"plugin.", "providers.", "_meta."}

func lookupKey(name string) (Key, bool) {
	i := slices.IndexFunc(Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return Keys[i], true
}

// ValidKey reports whether key can be one.
func ValidKey(key string) bool { return keyPattern().MatchString(key) }

// CheckValue reports why a key cannot have a value.
func CheckValue(key string, v json.RawMessage) error {
	switch {
	case !keyPattern().MatchString(key):
		return fmt.Errorf("%q cannot be a key: it does not match %s", key, keyPattern())
	case len(v) > MaxValue:
		return fmt.Errorf("%s: the value has %d bytes, %d at most", key, len(v), MaxValue)
	case !json.Valid(v):
		return fmt.Errorf("%s: the value is not JSON", key)
	case strings.HasPrefix(key, "providers."):
		return checkProviderKey(key, v)
	case strings.HasPrefix(key, GroupsPrefix):
		return Key{Name: key, kind: list}.check(v)
	}
	if slices.ContainsFunc(free, func(p string) bool { return strings.HasPrefix(key, p) }) {
		return nil
	}
	k, ok := lookupKey(key)
	if !ok {
		return fmt.Errorf("there is no key %q%s", key, suggest(key))
	}
	return k.check(v)
}

// choices are the values of the keys that have only a few.
var choices = map[string][]string{
	"traffic.bodies":  {"off", "errors", "all"},
	"sandbox.mode":    {"prefer", "require", "off"},
	"sandbox.backend": {"auto", "namespaces", "bwrap", "landlock", "seatbelt", "off"},
}

// lists are examples of keys that are lists; "" is that of the others. The file of
// settings is TOML, and what is set by a command is JSON.
var lists = map[string]string{
	"approval.rules":        `[{"principal":"device:*","tool":"shell","decision":"deny"}]`,
	"workspace.roots":       `["/home/me/work"]`,
	"sandbox.command.hosts": `["example.com","*.example.com:8443"]`,
	"sandbox.command.write": `["/home/me/out"]`,
	GroupsPrefix:            `["device:phone","token:ci"]`,
	"":                      `["one","two"]`,
}

func (k Key) check(v json.RawMessage) error {
	bad := func(want string) error { return fmt.Errorf("%s must be %s, not %s", k.Name, want, clip(v)) }
	switch k.kind {
	case text:
		var s string
		if json.Unmarshal(v, &s) != nil {
			return bad("a string")
		}
		if c := choices[k.Name]; c != nil && !slices.Contains(c, s) {
			return bad("one of " + strings.Join(c, ", "))
		}
	case number:
		var n int
		if json.Unmarshal(v, &n) != nil || n < 1 {
			return bad("a whole number from 1 on")
		}
	case count:
		var n int
		if json.Unmarshal(v, &n) != nil || n < 0 {
			return bad("a whole number from 0 on")
		}
	case boolean:
		var b bool
		if json.Unmarshal(v, &b) != nil {
			return bad("true or false")
		}
	case duration:
		var s string
		if json.Unmarshal(v, &s) != nil {
			return bad(`a duration such as "60s"`)
		}
		if d, err := time.ParseDuration(s); err != nil || d <= 0 {
			return bad(`a duration such as "60s"`)
		}
	case list:
		if v = bytes.TrimSpace(v); len(v) == 0 || v[0] != '[' {
			example := cmp.Or(lists[k.Name], lists[""])
			if strings.HasPrefix(k.Name, GroupsPrefix) {
				example = lists[GroupsPrefix]
			}
			return bad("a JSON list, such as " + example)
		}
	case names:
		var all []string
		if json.Unmarshal(v, &all) != nil || slices.ContainsFunc(all, func(n string) bool { return !variableName().MatchString(n) }) {
			return bad(`a list of names of environment variables, such as ["DOCKER_HOST"]`)
		}
	}
	return nil
}

func clip(v []byte) string {
	if len(v) > 60 {
		return string(v[:60]) + "…"
	}
	return string(v)
}

// suggest names the kernel key that was probably meant.
func suggest(key string) string {
	_, last, _ := strings.Cut(key, ".")
	for _, k := range Keys {
		if _, l, _ := strings.Cut(k.Name, "."); k.Name != key && (strings.EqualFold(k.Name, key) || (last != "" && last == l) || strings.HasPrefix(k.Name, key+".")) {
			return fmt.Sprintf("; did you mean %s?", k.Name)
		}
	}
	return "; plugin.<name>.* and providers.<id>.* are free, yaya config list shows the others"
}
