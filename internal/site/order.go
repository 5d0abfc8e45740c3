package main

import (
	"path"
	"strings"
)

// section is a part of the navigation. Its pages stand in the order in which they are read, and
// each leads to the next.
type section struct {
	Title string
	pages []string // paths in the repository; one that ends in /* is all other documents of a folder
}

// sections name every page of the site. A document of docs that they do not name is a failure.
var sections = []section{
	{"Start", []string{"docs/README.md", "docs/START.md", "docs/INSTALL.md"}},
	{"Guides", []string{
		"docs/guides/one-machine.md", "docs/guides/team.md", "docs/guides/remote-dashboards.md",
		"docs/guides/agent.md", "docs/guides/plugin-author.md", "docs/guides/operator.md", "docs/TROUBLESHOOTING.md",
	}},
	{"Subjects", []string{
		"docs/CONFIG.md", "docs/MCP.md", "docs/SANDBOX.md", "docs/DASHBOARD.md", "docs/CATALOG.md", "docs/AGENT.md", "docs/SESSIONS.md", "docs/SKILLS.md", "docs/HOOKS.md",
		"docs/PLUGINS.md", "docs/TLS.md", "docs/WIRE.md", "docs/CLUSTER.md", "docs/OPERATIONS.md", "docs/PROTOCOL.md",
	}},
	{"Reference", []string{
		"docs/reference/CLI.md", "docs/reference/SETTINGS.md", "docs/reference/API.md", "docs/reference/V1.md", "docs/reference/METHODS.md",
		"docs/reference/RPC.md", "docs/reference/WIRE.md", "docs/reference/EVENTS.md",
	}},
	{"Comparison", []string{"docs/COMPARISON.md", "docs/PEERS.md", "docs/BENCHMARKS.md"}},
	{"Security", []string{"SECURITY.md", "docs/SECURITY-MODEL.md", "docs/ROUGH_EDGES.md"}},
	{"The code", []string{
		"CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/WALKS.md", "docs/WHERE.md", "docs/FEATURE.md", "docs/REQUIREMENTS.md",
		"CHANGELOG.md", "docs/adr/README.md",
	}},
	{"Decisions", []string{"docs/adr/*"}},
}

// folded are sections whose pages the navigation does not list: their first document, which
// another section has, does.
var folded = map[string]bool{"Decisions": true}

// checked are documents whose links are checked, though they are not pages of the site.
var checked = []string{"README.md", "examples/README.md", "examples/coding-session/README.md", "examples/plugins/README.md", "deploy/compose/README.md", "sdk/typescript/README.md"}

// extra are files of docs that pages link to and that are for programs: the site has them as they are.
var extra = []string{"docs/asyncapi.json", "docs/plugin-abi.schema.json", "docs/events/*.json"}

// address returns where the site has a document of the repository: "" if it has none.
func address(file string) string {
	name, isDoc := strings.CutPrefix(file, "docs/")
	if !isDoc && strings.Contains(file, "/") {
		return ""
	}
	if path.Ext(name) != ".md" {
		return name
	}
	name = strings.TrimSuffix(name, ".md") + ".html"
	folder, base := path.Split(name)
	if isDoc && base == "README.html" {
		base = "index.html"
	}
	return folder + strings.ToLower(base)
}

// repository is where files are read that the site does not have.
const repository = "https://github.com/yaya-ai/yaya"
