package daemon

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// The folders of a package as it is shown; absolute, as they will be.
const (
	rootShown = "/-plugin-root-"
	dataShown = "/-plugin-data-"
)

var asVariables = strings.NewReplacer(rootShown, "${PLUGIN_ROOT}", dataShown, "${PLUGIN_DATA}")

// variable matches a variable of the environment in an entry.
var variable = lazyregexp.New(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)`)

// referred are the variables of the user's environment that a server of a package gets.
func referred(s servers.Server) (out []string) {
	if s.Format == servers.FormatAgentPlugins {
		return nil
	}
	texts := slices.Concat([]string{s.Command, s.URL, s.Dir, s.EnvFile}, s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))
	for _, text := range texts {
		for _, m := range variable().FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
	}
	out = append(out, s.PassEnv...)
	slices.Sort(out)
	return slices.Compact(out)
}

// packageParts describes the parts of a package to a person. The folders of the package stand in it
// as variables. boxes says what the sandbox of its servers enforces here; nil claims nothing.
func packageParts(name string, parts *agentpackage.Package, boxes *sandbox.Sandboxes) (out admin.Parts, err error) {
	out = admin.Parts{Format: string(parts.Format), Skills: parts.Skills, LeftOut: slices.Concat(parts.Faults, parts.Notes)}
	l, bad, err := packageServers(name, parts, rootShown, dataShown)
	if err != nil {
		return out, err
	}
	for _, x := range bad {
		out.LeftOut = append(out.LeftOut, asVariables.Replace(fmt.Sprintf("server %s: %v", servers.Shown(x.Name), x.Err)))
	}
	for _, s := range l {
		for key := range agentpackage.Variables("", "") { // which every server of a package has
			delete(s.Env, key)
		}
		line := servers.Shown(s.Name) + ": " + s.Brings(manage.PlacesOf(s), mcpbridge.Here(boxes, s, os.LookupEnv))
		if names := referred(s); len(names) > 0 {
			line += "; gets your variables " + strings.Join(names, ", ")
		}
		out.Servers = append(out.Servers, asVariables.Replace(line))
	}
	for _, h := range parts.Hooks {
		at := string(h.Event)
		if h.Tool != "" {
			at += " (" + h.Tool + ")"
		}
		command := h.Command
		if strings.HasPrefix(command, `"`) || strings.ContainsFunc(command, unicode.IsControl) { // it would read otherwise
			command = strconv.Quote(command)
		}
		out.Hooks = append(out.Hooks, at+": "+command)
	}
	return out, nil
}

// otherParts describes what a package has that the installed one has not, what runs first.
func otherParts(was, now admin.Parts) (out []string) {
	for _, part := range []struct {
		what     string
		was, now []string
	}{{"NEW HOOK", was.Hooks, now.Hooks}, {"NEW SERVER", was.Servers, now.Servers}, {"new skill", was.Skills, now.Skills}} {
		for _, line := range part.now {
			if !slices.Contains(part.was, line) {
				out = append(out, part.what+": "+line)
			}
		}
	}
	for _, line := range slices.Concat(was.Hooks, was.Servers, was.Skills) {
		if !slices.Contains(slices.Concat(now.Hooks, now.Servers, now.Skills), line) {
			out = append(out, "no longer: "+line)
		}
	}
	return out
}
