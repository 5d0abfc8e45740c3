package hookconf_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/hookconf"
)

func TestParse(t *testing.T) {
	hooks, err := hookconf.Parse([]byte(`
[[hooks]]
event = "pre_tool"
command = "true"
[[hooks]]
name = "later"
event = "turn_end"
command = "cat"
timeout = "5m"
`), "/h.toml")
	if err != nil || len(hooks) != 2 {
		t.Fatalf("Parse() = %+v, %v, want two hooks", hooks, err)
	}
	for i, want := range []hookconf.Hook{
		{Name: "pre_tool 1", Event: hookconf.PreTool, Command: "true", Timeout: hookconf.DefaultTimeout, File: "/h.toml"},
		{Name: "later", Event: hookconf.TurnEnd, Command: "cat", Timeout: hookconf.MaxTimeout, File: "/h.toml"},
	} {
		if got := fmt.Sprintf("%+v", hooks[i]); got != fmt.Sprintf("%+v", want) {
			t.Errorf("hook %d is %s, want %+v", i, got, want)
		}
	}
	if hooks, err := hookconf.Parse(nil, "f"); err != nil || len(hooks) != 0 {
		t.Errorf("Parse() of an empty file = %v, %v, want no hooks", hooks, err)
	}
}

// A file with a mistake is refused as a whole, and the error names the file and the mistake.
func TestParseRefuses(t *testing.T) {
	one := "[[hooks]]\nevent = \"pre_tool\"\ncommand = \"true\"\n"
	for text, want := range map[string]string{
		"[[hooks":                                     "toml",
		"a = 1":                                       `there is no member "a"`,
		one + "comand = \"x\"":                        `there is no member "hooks.comand"`,
		"[[hooks]]\nevent = \"x\"":                    `unknown event "x"`,
		"[[hooks]]\ncommand = \"x\"":                  `unknown event ""`,
		"[[hooks]]\nevent = \"prompt\"":               "command is missing",
		one + "command = \"y\"":                       "toml",
		one + "timeout = \"soon\"":                    "timeout",
		one + "timeout = \"0s\"":                      "timeout is not between 0 and 5m0s",
		one + "timeout = \"5m1ns\"":                   "timeout is not between 0 and 5m0s",
		one + "name = \"a\\nb\"":                      "control character",
		one + "name = \"" + repeat(61) + "\"":         "more than 60 bytes",
		one + "tool = \"" + repeat(5000) + `"`:        "tool has more than",
		strings.Replace(one, "true", repeat(5000), 1): "more than 4096 bytes",
		strings.Replace(one, "true", `a\u0000b`, 1):   "a NUL",
		strings.Replace(one, "pre_tool", "prompt", 1) + "tool = \"x\"": "tool is for pre_tool",
		strings.Repeat(one+"name = \"a\"\n", 2):                        `two hooks are named "a"`,
		strings.Repeat(one, 101):                                       "101 hooks, 100 at most",
		"#" + repeat(hookconf.MaxFile):                                 "more than 1048576 bytes",
	} {
		if hooks, err := hookconf.Parse([]byte(text), "/h.toml"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "/h.toml") || len(hooks) > 0 {
			t.Errorf("Parse(%.80q) = %d hooks, %v, want none, and %q with the file's name", text, len(hooks), err, want)
		}
	}
}

func repeat(n int) string { return strings.Repeat("x", n) }

func TestMatches(t *testing.T) {
	for pattern, c := range map[string]struct{ yes, no []string }{
		"":            {[]string{"shell", "x"}, nil},
		"shell":       {[]string{"shell"}, []string{"shell2", "a_shell", ""}},
		"db__*":       {[]string{"db__", "db__drop"}, []string{"db", "x_db__y"}},
		"*__now | a*": {[]string{"time__now", "a", "ab"}, []string{"b", "now"}},
		"a.c":         {[]string{"a.c"}, []string{"abc"}},
		"a)|(?:b":     {[]string{"a)"}, []string{"a", "b"}},
	} {
		hooks, err := hookconf.Parse(fmt.Appendf(nil, "[[hooks]]\nevent = \"pre_tool\"\ncommand = \"true\"\ntool = %q\n", pattern), "f")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.yes {
			if !hooks[0].Matches(name) || !hooks[0].Matches("another name", name) {
				t.Errorf("%q does not match %q", pattern, name)
			}
		}
		for _, name := range c.no {
			if hooks[0].Matches(name) {
				t.Errorf("%q matches %q", pattern, name)
			}
		}
	}
}

// claudeFile is a settings.json with one group of hooks.
func claudeFile(event, group string) []byte {
	return fmt.Appendf(nil, `{"model": "x", "hooks": {%q: [%s]}}`, event, group)
}

func TestParseClaude(t *testing.T) {
	for _, c := range []struct {
		name, event, group string
		want, ignored      string // of the hook and of those that are ignored
	}{
		{"a guard", "PreToolUse", `{"matcher":"Bash|mcp__db__.*","hooks":[{"type":"command","command":"x"}]}`, "PreToolUse 1 pre_tool Bash|mcp__db__.* x 1m0s", ""},
		{"all tools", "PostToolUseFailure", `{"matcher":"*","hooks":[{"type":"command","command":"x","timeout":1.5,"async":true}]}`, "PostToolUseFailure 1 post_tool  x 1.5s", ""},
		{"a long time", "Stop", `{"hooks":[{"type":"command","command":"x","timeout":1e300}]}`, "Stop 1 turn_end  x 5m0s", ""},
		{"a matcher of no tool", "SessionStart", `{"matcher":"startup","hooks":[{"type":"command","command":"x"}]}`, "SessionStart 1 session_start  x 1m0s", ""},
		{"another event", "Notification", `{"hooks":[{"type":"command","command":"x"}]}`, "", "Notification 1"},
		{"another type", "UserPromptSubmit", `{"hooks":[{"type":"prompt"},{"type":"command","command":"x"}]}`, "UserPromptSubmit 2 prompt  x 1m0s", "UserPromptSubmit 1"},
	} {
		hooks, ignored, err := hookconf.ParseClaude(claudeFile(c.event, c.group), "/s.json")
		got := ""
		for _, h := range hooks {
			got += fmt.Sprintf("%s %s %s %s %v", h.Name, h.Event, h.Tool, h.Command, h.Timeout)
			if !h.Claude || h.File != "/s.json" {
				t.Errorf("%s: got Claude = %v, File = %q, want true and the file", c.name, h.Claude, h.File)
			}
		}
		if err != nil || got != c.want || strings.Join(ignored, ",") != c.ignored {
			t.Errorf("%s: ParseClaude() = %q, ignored %q, %v, want %q, %q", c.name, got, ignored, err, c.want, c.ignored)
		}
	}
	if hooks, _, err := hookconf.ParseClaude([]byte(`{"disableAllHooks":true,"hooks":{"PreToolUse":[{"hooks":[{"type":"http"}]}]}}`), "f"); err != nil || len(hooks) != 0 {
		t.Errorf("with disableAllHooks: %v, %v, want no hooks", hooks, err)
	}
}

func TestParseClaudeRefuses(t *testing.T) {
	hook := `{"type":"command","command":"x"}`
	for text, want := range map[string]string{
		"":              "unexpected end",
		"{":             "unexpected end",
		`{"hooks": []}`: "cannot unmarshal",
		string(claudeFile("PreToolUse", `{"hooks":[{"type":"http","url":"x"}]}`)):                `guards calls and has the type "http"`,
		string(claudeFile("PreToolUse", `{"matcher":"(","hooks":[`+hook+`]}`)):                   "matcher",
		string(claudeFile("PreToolUse", `{"matcher":"a)|(b","hooks":[`+hook+`]}`)):               "matcher",
		string(claudeFile("PreToolUse", `{"matcher":"`+repeat(5000)+`","hooks":[`+hook+`]}`)):    "matcher has more than",
		string(claudeFile("PreToolUse", `{"hooks":[{"type":"command"}]}`)):                       "command is missing",
		string(claudeFile("PreToolUse", `{"hooks":[`+strings.Repeat(hook+",", 100)+hook+`]}`)):   "100 at most",
		string(claudeFile("Notification", `{"hooks":[`+strings.Repeat(hook+",", 100)+hook+`]}`)): "100 at most",
		string(claudeFile("PreToolUse", repeat(hookconf.MaxFile))):                               "more than 1048576 bytes",
	} {
		if hooks, ignored, err := hookconf.ParseClaude([]byte(text), "/s.json"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "/s.json") || len(hooks)+len(ignored) > 0 {
			t.Errorf("ParseClaude(%.80q) = %d hooks, %d ignored, %v, want none, and %q with the file's name", text, len(hooks), len(ignored), err, want)
		}
	}
}

// Output that is not an answer is an error: a guard that nobody understands denies.
func TestAnswer(t *testing.T) {
	own, claude := hookconf.Hook{Event: hookconf.PreTool}, hookconf.Hook{Event: hookconf.PreTool, Claude: true}
	start := hookconf.Hook{Event: hookconf.SessionStart, Claude: true}
	for _, c := range []struct {
		hook           hookconf.Hook
		stdout, stderr string
		code           int
		want           hookconf.Answer
		err            string
	}{
		{own, " \n", "", 0, hookconf.Answer{}, ""},
		{own, `{"decision":"ask","reason":"sure?","context":"c"}`, "", 0, hookconf.Answer{Decision: hookconf.Ask, Reason: "sure?", Context: "c"}, ""},
		{own, `{}`, "not read", 0, hookconf.Answer{}, ""},
		{own, `{"decision":"allow"}`, "no", 2, hookconf.Answer{Decision: hookconf.Deny, Reason: "no"}, ""},
		{own, "", "", 2, hookconf.Answer{Decision: hookconf.Deny, Reason: "exit code 2"}, ""},
		{own, `{"decision":"allow"}`, "oops", 1, hookconf.Answer{}, "exit code 1: oops"},
		{own, "", "", -1, hookconf.Answer{}, "exit code -1"},
		{own, "fine", "", 0, hookconf.Answer{}, "not the JSON of an answer"},
		{own, "null", "", 0, hookconf.Answer{}, "not the JSON of an answer"},
		{own, "[]", "", 0, hookconf.Answer{}, "not the JSON of an answer"},
		{own, `{"decision":"allow"} x`, "", 0, hookconf.Answer{}, "not the JSON of an answer"},
		{own, `{"decision":"allow"}}`, "", 0, hookconf.Answer{}, "not the JSON of an answer"},
		{own, `{"decison":"deny"}`, "", 0, hookconf.Answer{}, `did you mean "decision"`},
		{own, `{"decision":"defer"}`, "", 0, hookconf.Answer{}, `unknown decision "defer"`},
		{own, `{"reason":"` + repeat(2000) + `"}`, "", 0, hookconf.Answer{Reason: repeat(1024) + "…"}, ""},
		{claude, "a log line", "", 0, hookconf.Answer{}, ""},
		{start, "a text", "", 0, hookconf.Answer{Context: "a text"}, ""},
		{claude, "{", "", 0, hookconf.Answer{}, "not the JSON of an answer"},
		{claude, `{"decision":"block","reason":"r","hookSpecificOutput":{"permissionDecision":"allow"}}`, "", 0, hookconf.Answer{Decision: hookconf.Deny, Reason: "r"}, ""},
		{claude, `{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}`, "", 0, hookconf.Answer{Decision: hookconf.Deny}, ""},
		{claude, `{"decision":"perhaps"}`, "", 0, hookconf.Answer{}, `unknown decision "perhaps"`},
		{claude, `{"hookSpecificOutput":{"permissionDecision":"perhaps"}}`, "", 0, hookconf.Answer{}, `unknown decision "perhaps"`},
		{claude, `{"hookSpecificOutput":{"permissionDecision":"defer"}}`, "", 0, hookconf.Answer{Decision: hookconf.Ask}, ""},
		{claude, `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"m"}}}`, "", 0, hookconf.Answer{Decision: hookconf.Deny, Reason: "m"}, ""},
		{claude, `{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{}}}}`, "", 0, hookconf.Answer{}, "change the arguments"},
		{claude, `{"continue":false,"stopReason":"s"}`, "", 0, hookconf.Answer{Decision: hookconf.Deny, Reason: "s"}, ""},
		{claude, `{"continue":true,"suppressOutput":true}`, "", 0, hookconf.Answer{}, ""},
	} {
		got, err := c.hook.Answer(c.stdout, c.stderr, c.code)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("Answer(%.80q, %q, %d) = %+v, %v, want %+v, %q", c.stdout, c.stderr, c.code, got, err, c.want, c.err)
		}
	}
	if got, err := own.Answer(`{"result":""}`, "", 0); err != nil || got.Result == nil || *got.Result != "" {
		t.Errorf("an empty result: %+v, %v, want one that replaces", got, err)
	}
}

// Hooks are complete and answers within the bounds, whatever files and output hold, and nothing
// panics.
func FuzzHooks(f *testing.F) {
	f.Add("[[hooks]]\nname = \"a\"\nevent = \"pre_tool\"\ncommand = \"true\"\ntool = \"a*|b\"\ntimeout = \"3s\"\n", "shell")
	f.Add(string(claudeFile("PreToolUse", `{"matcher":"Bash","hooks":[{"type":"command","command":"x","timeout":5}]}`)), "Bash")
	f.Add(`{"decision":"deny","reason":"no","result":"x"}`, "")
	f.Add(`{"hookSpecificOutput":{"permissionDecision":"ask","updatedInput":{}}}`, "x")
	f.Fuzz(func(t *testing.T, text, tool string) {
		own, err := hookconf.Parse([]byte(text), "f")
		if err != nil && len(own) > 0 {
			t.Errorf("Parse() = %d hooks beside %v, want none", len(own), err)
		}
		claude, ignored, err := hookconf.ParseClaude([]byte(text), "f")
		if err != nil && len(claude)+len(ignored) > 0 {
			t.Errorf("ParseClaude() = %d hooks beside %v, want none", len(claude), err)
		}
		for _, h := range append(own, claude...) {
			if !slices.Contains(hookconf.Events, h.Event) || strings.TrimSpace(h.Command) == "" || h.Name == "" || h.Timeout <= 0 || h.Timeout > 5*time.Minute {
				t.Errorf("the hook %+v is not complete", h)
			}
			h.Matches(tool, "x")
		}
		for _, h := range []hookconf.Hook{{Event: hookconf.PreTool}, {Event: hookconf.Prompt, Claude: true}} {
			a, err := h.Answer(text, tool, 0)
			switch a.Decision {
			case "", hookconf.Allow, hookconf.Ask, hookconf.Deny:
			default:
				t.Errorf("Answer() has the decision %q", a.Decision)
			}
			if err != nil && a != (hookconf.Answer{}) {
				t.Errorf("Answer() = %+v beside %v, want nothing", a, err)
			}
			if len(a.Reason) > 1<<10+3 || len(a.Context) > 16<<10+3 {
				t.Errorf("Answer() has %d and %d bytes, want bounded ones", len(a.Reason), len(a.Context))
			}
		}
	})
}
