package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/members"
)

// Bounds of a configuration.
const (
	MaxFile  = 1 << 20  // bytes of the TOML file
	MaxValue = 64 << 10 // bytes of one value
	maxStore = 8 << 20  // bytes of the live part
	maxKeys  = 10_000

	maxValueShown = 60 // bytes of a value, in an error
)

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) // long repetitions compile slowly

var keyPattern = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,7}$`)

// kind is the type of a kernel key.
type kind int

const (
	text kind = iota
	number
	boolean
	duration
	list
	names // of environment variables
)

// Key is a key that the kernel knows.
type Key struct {
	Name    string
	Default string // JSON; "" for none
	Doc     string
	kind    kind
}

// Keys are the kernel's keys with their defaults.
var Keys = []Key{
	{"provider", "", "id of the active provider instance, see yaya provider list", text},
	{"strategy", `"react"`, "id of the strategy that drives turns", text},
	{"approval.timeout", `"60s"`, "how long an ask waits for its answer; unless it is set, an hour in sessions that no MCP client has begun", duration},
	{"approval.rules", "", "rules about tool calls, see docs/CONFIG.md", list},
	{"auth.issuer", "", "authorization server whose tokens MCP clients may use", text},
	{"auth.audience", "", "URL of the MCP endpoint that those tokens must be for", text},
	{"workspace.roots", "", "folders below which devices and other clients may have agents work", list},
	{"servers.pass_env", "", "variables of yaya's environment that every MCP server's process gets too", names},
	{"sandbox.mode", `"prefer"`, "how strictly to enforce a sandbox: prefer (everything that this machine supports), require (everything, or the program does not start) or off (nothing)", text},
	{"sandbox.backend", `"auto"`, "back end of sandboxes: auto, or one that yaya sandbox lists", text},
	{"sandbox.command.hosts", "", "hosts that agents' commands and web_fetch reach without an ask, such as example.com or *.example.com:8443", list},
	{"sandbox.command.write", "", "folders that agents' commands may write in addition to the workspace", list},
	{"wire.export", "", "names of tools that other kernels may invoke as skills", list},
	{"catalog.registries", `["official=https://registry.modelcontextprotocol.io"]`, "registries of MCP servers, as NAME=URL; an empty list asks none", list},
	{"servers.max_message_bytes", `67108864`, "bytes of one message of an MCP server or client, from 1 MiB to 256 MiB", number},
	{"servers.tool_max_sec", "", "seconds that a call of an MCP server's tool may take in total, even with progress", number},
	{"http.fast_path", `true`, "serve simple requests of MCP clients without net/http; read at the start", boolean},
	{"hooks.claude", `false`, "run the hooks in .claude/settings.json, too: yours, and those of trusted folders", boolean},
	{"loop.max_iterations", `500`, "model calls in one turn", number},
	{"loop.llm_timeout", `"10m"`, "how long one model call may take", duration},
	{"models.source", `"https://models.dev/api.json"`, "where yaya provider refresh gets the list of models: models.dev, or a copy of its api.json", text},
	{"compaction.enabled", `true`, "shorten histories that near the model's window", boolean},
	{"compaction.threshold", "", "tokens of a request from which on its history is shortened, at most 80 % of the model's window", number},
	{"compaction.target", "", "tokens of a history after its older part was summarized", number},
	{"compaction.tries", `3`, "attempts at a summary", number},
	{"model.summary", "", "provider that sums histories up, as ID or ID/MODEL", text},
	{"model.fallbacks", "", "models that are asked, one after the other, when a session's cannot answer, as ID or ID/MODEL of a provider", list},
	{"model.agent", "", "models that sub-agents may use beside that of their session, as ID or ID/MODEL of a provider", list},
	{"budget.session_cents", "", "US cents that a session may cost with its sub-agents and summaries, by the prices of its models", number},
	{"budget.day_cents", "", "US cents that all sessions together may cost in a day (UTC)", number},
	{"session.heartbeat_timeout", `"60s"`, "when a silent connection is detached", duration},
	{"session.reap_interval", `"5s"`, "how often to look for silent connections", duration},
	{"traffic.bodies", "", "calls whose arguments and results are recorded: off, errors or all; unset: all, and off once a device is enrolled, a lasting token exists or auth.issuer is set", text},
	{"traffic.days", `7`, "days to keep recorded calls; 0 records none", number},
	{"traffic.max_bytes", `268435456`, "bytes of recorded calls to keep", number},
	{"retention.sessions", `0`, "days after their last change for which sessions are kept; 0 keeps them", number},
	{"retention.archives", `90`, "days for which archived sessions are kept; 0 keeps them", number},
	{"retention.artifacts", `30`, "days for which artifacts are kept that no session refers to; 0 keeps them", number},
	{"retention.traffic", "", "days for which recorded calls are kept, instead of traffic.days; 0 records none", number},
	{"retention.memory", `0`, "days after their last change for which memories are kept; 0 keeps them", number},
	{"log.file", "", "file that the daemon logs to instead of standard error; an absolute path", text},
	{"log.level", `"warn"`, "lowest level that the daemon logs: debug, info, warn or error", text},
	{"log.max_mb", `32`, "MiB of a log file; a full one is renamed, and three are kept", number},
	{"otel.endpoint", "", "base URL of an OpenTelemetry collector, such as http://127.0.0.1:4318", text},
	{"plugins.max_failures", `3`, "consecutive failures that unload a plugin", number},
	{"plugins.handler_timeout", `"30s"`, "how long a plugin may handle one event", duration},
	{"plugins.guard_timeout", `"10s"`, "how long a plugin that guards may take for an answer; without one, the call or message is denied", duration},
	{"agent_tool.max_depth", `5`, "how deep sub-agents may nest", number},
	{"agent_tool.max_wall", `"10m"`, "how long a sub-agent may take", duration},
}

// unset describes what holds while a key without a fixed default has no value.
var unset = map[string]string{
	"provider":              "none; yaya provider use ID chooses one",
	"servers.tool_max_sec":  "no limit",
	"compaction.threshold":  "80 % of the model's window",
	"compaction.target":     "60 % of the model's window, less what prompt and tools take",
	"model.summary":         "the model of the session",
	"model.agent":           "none",
	"budget.session_cents":  "no limit",
	"budget.day_cents":      "no limit",
	"model.fallbacks":       "none",
	"traffic.bodies":        "all, or off once others can call",
	"retention.traffic":     "traffic.days",
	"approval.rules":        "none",
	"auth.issuer":           "none",
	"auth.audience":         "none",
	"workspace.roots":       "none",
	"servers.pass_env":      "none",
	"sandbox.command.hosts": "none",
	"sandbox.command.write": "none",
	"wire.export":           "none",
	"log.file":              "standard error",
	"otel.endpoint":         "OTEL_EXPORTER_OTLP_ENDPOINT, and without it nothing is sent",
}

// Choices are the only values of a key; nil if it takes others as well.
func (k Key) Choices() []string { return choices[k.Name] }

// Type is the type of a key's value: text, number, boolean, duration, list (of texts), or
// json for what has a form of its own.
func (k Key) Type() string {
	switch {
	case k.Name == "approval.rules":
		return "json"
	case k.kind == number:
		return "number"
	case k.kind == boolean:
		return "boolean"
	case k.kind == duration:
		return "duration"
	case k.kind == list, k.kind == names:
		return "list"
	}
	return "text"
}

// Unset describes what holds while the key has no value; "" if it has a fixed default.
func (k Key) Unset() string { return unset[k.Name] }

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

// ValidKey reports whether key has the form of a key.
func ValidKey(key string) bool { return keyPattern().MatchString(key) }

// CheckValue reports why a key cannot have a value.
func CheckValue(key string, v json.RawMessage) error {
	if err := checkForm(key, v); err != nil {
		return err
	}
	if strings.HasPrefix(key, "providers.") {
		return checkProviderFact(key, v)
	}
	if k, _ := lookupKey(key); (k.kind != list || key == "approval.rules") && !strings.HasPrefix(key, GroupsPrefix) {
		return nil
	}
	var texts []string
	if json.Unmarshal(v, &texts) != nil || slices.Contains(texts, "") {
		return fmt.Errorf("%s must be a list of strings, such as %s, not %s", key, example(key), cut.Text(string(v), maxValueShown))
	}
	return nil
}

// checkForm is [CheckValue] without the items of lists: the live part may hold lists that were
// accepted before their items were checked, and must still open.
func checkForm(key string, v json.RawMessage) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	switch {
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
	k, _ := lookupKey(key)
	return k.check(v)
}

// choices are the values of the keys that have only a few.
var choices = map[string][]string{
	"traffic.bodies":  {"off", "errors", "all"},
	"log.level":       {"debug", "info", "warn", "error"},
	"sandbox.mode":    {"prefer", "require", "off"},
	"sandbox.backend": {"auto", "namespaces", "bwrap", "landlock", "seatbelt", "off"},
}

// exampleLists has examples of keys that are lists; "" is the example for all others. The
// settings file is TOML, and values set by a command are JSON.
var exampleLists = map[string]string{
	"approval.rules":        `[{"principal":"device:*","tool":"shell","decision":"deny"}]`,
	"workspace.roots":       `["/home/me/work"]`,
	"model.fallbacks":       `["openai/gpt-5-mini","local"]`,
	"model.agent":           `["local","openai/gpt-5-mini"]`,
	"sandbox.command.hosts": `["example.com","*.example.com:8443"]`,
	"sandbox.command.write": `["/home/me/out"]`,
	"catalog.registries":    `["official=https://registry.modelcontextprotocol.io","team=https://mcp.example.com"]`,
	GroupsPrefix:            `["device:phone","token:ci"]`,
	"":                      `["one","two"]`,
}

// example returns a list that a key can have.
func example(key string) string {
	if strings.HasPrefix(key, GroupsPrefix) {
		key = GroupsPrefix
	}
	return cmp.Or(exampleLists[key], exampleLists[""])
}

// CheckKey reports why nothing can be set under a key.
func CheckKey(key string) error {
	if _, known := lookupKey(key); known {
		return nil
	}
	switch {
	case !keyPattern().MatchString(key):
		return fmt.Errorf("%q cannot be a key: it does not match %s", key, keyPattern())
	case strings.HasPrefix(key, GroupsPrefix), slices.ContainsFunc(free, func(p string) bool { return strings.HasPrefix(key, p) }):
		return nil
	}
	return fmt.Errorf("there is no key %q%s", key, suggest(key))
}

func (k Key) check(v json.RawMessage) error {
	bad := func(want string) error {
		return fmt.Errorf("%s must be %s, not %s", k.Name, want, cut.Text(string(v), maxValueShown))
	}
	switch k.kind {
	case text:
		var s string
		if json.Unmarshal(v, &s) != nil {
			return bad("a string")
		}
		if c := choices[k.Name]; c != nil && !slices.Contains(c, s) {
			return bad("one of " + strings.Join(c, ", "))
		}
	case number, duration:
		n, ok := k.read(v)
		if s := k.span(); !ok || n < s.from || n > s.to {
			return bad(k.wanted())
		}
	case boolean:
		var b bool
		if json.Unmarshal(v, &b) != nil {
			return bad("true or false")
		}
	case list:
		if v = bytes.TrimSpace(v); len(v) == 0 || v[0] != '[' {
			return bad("a list, such as " + example(k.Name))
		}
	case names:
		var all []string
		if json.Unmarshal(v, &all) != nil || slices.ContainsFunc(all, func(n string) bool { return !variableName().MatchString(n) }) {
			return bad(`a list of names of environment variables, such as ["DOCKER_HOST"]`)
		}
	}
	return nil
}

// suggest names the kernel key that was probably meant.
func suggest(key string) string {
	_, last, _ := strings.Cut(key, ".")
	for _, k := range Keys {
		if _, l, _ := strings.Cut(k.Name, "."); k.Name != key && (strings.EqualFold(k.Name, key) || (last != "" && last == l) || strings.HasPrefix(k.Name, key+".")) {
			return fmt.Sprintf("; did you mean %s?", k.Name)
		}
	}
	names := make([]string, len(Keys))
	for i, k := range Keys {
		names[i] = k.Name
	}
	if c := members.Closest(key, names); c != "" {
		return fmt.Sprintf("; did you mean %s?", c)
	}
	return "; plugin.<name>.* and providers.<id>.* are free, yaya config list shows the others"
}
