package daemon

import (
	"fmt"
	"os"
	"slices"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// packageParts describes the parts of a package to a person. The folders of the package stand in it
// as variables. boxes says what the sandbox of its servers enforces here; nil claims nothing.
func packageParts(name string, parts *agentpackage.Package, boxes *sandbox.Sandboxes) (out admin.Parts, err error) {
	out = admin.Parts{Format: string(parts.Format), Skills: parts.Skills, LeftOut: slices.Concat(parts.Faults, parts.Notes)}
	l, bad, err := packageServers(name, parts, "${PLUGIN_ROOT}", "${PLUGIN_DATA}")
	if err != nil {
		return out, err
	}
	for _, x := range bad {
		out.LeftOut = append(out.LeftOut, fmt.Sprintf("server %s: %v", x.Name, x.Err))
	}
	for _, s := range l {
		for key := range agentpackage.Variables("", "") { // which every server of a package has
			delete(s.Env, key)
		}
		at := manage.PlacesOf(s)
		out.Servers = append(out.Servers, s.Name+": "+s.Brings(at, mcpbridge.Here(boxes, s, os.LookupEnv)))
	}
	for _, h := range parts.Hooks {
		at := string(h.Event)
		if h.Tool != "" {
			at += " (" + h.Tool + ")"
		}
		out.Hooks = append(out.Hooks, at+": "+h.Command)
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
