package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/kernel/config"
)

var (
	inlineCode = regexp.MustCompile("`(yaya [^`]+)`")
	typed      = regexp.MustCompile(`(?:^|\$ |sudo |\| |-u yaya )(yaya [a-z-].*)`)
	sentence   = regexp.MustCompile(`^yaya (?:is|was|did|ended|runs|in) `) // of an error, or a heading
	plainWord  = regexp.MustCompile(`^[a-z][a-z-]*$`)
	stop       = regexp.MustCompile(` *(?:[|;&>#)]| …).*`)
)

// Commands that documents name, with their flags, are those that yaya has. TestGuides runs some;
// this looks at all others.
func TestDocumentedCommands(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "deploy/compose/*.md", "examples/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	named := 0
	for _, file := range files {
		if filepath.Base(file) == "CHANGELOG.md" || filepath.Base(file) == "REQUIREMENTS.md" {
			continue // what was, and what was asked for
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for i, line := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				continue
			}
			var commands []string
			if m := typed.FindStringSubmatch(strings.TrimSpace(line)); m != nil && (fenced || strings.HasPrefix(line, "    ")) {
				commands = []string{m[1]}
			}
			for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
				if !sentence.MatchString(m[1]) {
					commands = append(commands, m[1])
				}
			}
			for _, command := range commands {
				named++
				if problem := notACommand(command); problem != "" {
					t.Errorf("%s:%d: %s: %s", file, i+1, command, problem)
				}
			}
		}
	}
	if named < 300 {
		t.Errorf("%d commands were looked at, want all", named)
	}
}

// notACommand returns what yaya does not have of a command line, "" if it has all.
func notACommand(line string) string {
	root := newRoot()
	words := strings.Fields(stop.ReplaceAllString(line, ""))[1:]
	c, rest := root, words
	for len(rest) > 0 {
		if strings.HasPrefix(rest[0], "--data-dir") || strings.HasPrefix(rest[0], "--config-dir") {
			rest = rest[min(2, len(rest)):]
			continue
		}
		next := below(c, rest[0])
		if next == nil {
			break
		}
		c, rest = next, rest[1:]
	}
	if len(rest) > 0 && c.HasSubCommands() && plainWord.MatchString(rest[0]) {
		return "there is no command " + c.CommandPath() + " " + rest[0]
	}
	for _, word := range rest {
		if word == "--" || c.DisableFlagParsing || (c.CommandPath() == "yaya mcp add" && strings.HasPrefix(word, "-y")) {
			break // words of another program
		}
		name, long := strings.CutPrefix(strings.Trim(word, "[]"), "--")
		name, _, _ = strings.Cut(name, "=")
		if long && plainWord.MatchString(name) && c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil && name != "help" {
			return c.CommandPath() + " has no flag --" + name
		}
	}
	return ""
}

func below(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}

func TestNotACommand(t *testing.T) {
	for line, want := range map[string]string{
		"yaya mcp add fs npx -y x --nope":         "",
		"yaya mcp lst":                            "there is no command yaya mcp lst",
		"yaya nope":                               "there is no command yaya nope",
		"yaya mcp list --nope":                    "yaya mcp list has no flag --nope",
		"yaya mcp list --json | jq --nope":        "",
		"yaya serve --listen 0.0.0.0:1 --verbose": "",
		"yaya verify DIR":                         "",
		"yaya service install -- --acme --host x": "",
		"yaya --data-dir x mcp nope":              "there is no command yaya mcp nope",
	} {
		if got := notACommand(line); got != want {
			t.Errorf("notACommand(%q) = %q, want %q", line, got, want)
		}
	}
}

// Every setting has its row in docs/CONFIG.md. A row can name several: `a.b`, `.c` is a.b and a.c.
func TestSettingsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], " | ")
		first := ""
		for _, m := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(cell, -1) {
			if after, short := strings.CutPrefix(m[1], "."); short {
				documented[first[:strings.LastIndex(first, ".")+1]+after] = true
				continue
			}
			first = m[1]
			documented[first] = true
		}
	}
	for _, k := range config.Keys {
		if !documented[k.Name] {
			t.Errorf("docs/CONFIG.md has no row for the setting %s", k.Name)
		}
	}
}
