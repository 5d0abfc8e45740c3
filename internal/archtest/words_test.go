package archtest

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// COD-4: tests do not lean on a layer above the package that they test, either.
func TestTestsImportDownwards(t *testing.T) {
	above := []string{"cmd/...", "daemon", "gateway/...", "mcpbridge/..."}
	looked := 0
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		if slices.ContainsFunc(above, func(layer string) bool { return matches(layer, from) }) || matches("examples/...", from) || matches("internal/...", from) {
			continue
		}
		looked++
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			to, ours := strings.CutPrefix(imp, module+"/")
			if ours && slices.ContainsFunc(above, func(layer string) bool { return matches(layer, to) }) {
				t.Errorf("the tests of %s import %s, want nothing of %v", from, to, above)
			}
		}
	}
	if looked < 15 {
		t.Errorf("%d packages were looked at, want all lower layers", looked)
	}
}

// words are those that meant more than one thing, with the folders and files in which they
// have their meaning, or a qualified one.
var words = map[string][]string{
	"registry|registries": {
		"kernel", "kernel/tool", "kernel/plugin", "kernel/loop/loop.go", "plugins/provider/providertest", "feature", "mcpbridge", "mcpbridge/downstream", "mcpbridge/relay/router.go",
		"daemon/bridge.go", "daemon/front.go", "gateway/admin/admin.go", "gateway/admin/plugins.go", "gateway/admin/tools.go",
		// Package registries.
		"internal/peerbench/install.go", "internal/peerbench/peers.go", "internal/sandbox/npmrc.go", "internal/sandbox/cargo.go", "internal/sandbox/standing.go", "internal/sandbox/profiles.go", "internal/sandbox/managers.go",
		"mcpbridge/servers/environ.go", "mcpbridge/servers/sandbox.go", "plugins/tool_shell/shell.go",
		// Those of other programs and institutions: macOS, IANA, Prometheus, huma.
		"internal/sandbox/seatbelt.go", "plugins/fetch", "gateway/admin/pluginsinstall.go", "internal/netaddr/netaddr.go", "gateway/metrics.go", "gateway/api/operation.go", "mcpbridge/catalog", "mcpbridge/servers/origin.go", "daemon/catalog.go", "gateway/admin/catalog.go", "cmd/yaya/catalog.go", "cmd/yaya/cataloginstall.go", "kernel/config/keys.go",
	},
	"feeds?": {"gateway/follow", "gateway/sessions", "gateway/wire"},
	"hubs?":  {"mcpbridge/servers/parse.go", "internal/sandbox/credentials.go", "internal/peerbench/peers.go"}, // of other programs
}

// linux lists the folders in which "kernel" means the operating system's, and cannot be misread.
var linux = []string{"internal/sandbox/..."}

// COD-4: a word means what the glossary in docs/ARCHITECTURE.md says, and nothing else
// in other files.
func TestWordsMeanOneThing(t *testing.T) {
	looked, used := 0, map[string]bool{}
	kernel := regexp.MustCompile(`(?i)(^|[^/."\w])kernel\b[^/.(]`)
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			looked++
			in := func(where []string) (found bool) {
				for _, pattern := range where {
					if matches(pattern, dir) || pattern == dir+"/"+name {
						used[pattern], found = true, true
					}
				}
				return found
			}
			for word, where := range words {
				if regexp.MustCompile(`(?i)\b(`+word+`)\b`).Match(data) && !in(where) {
					t.Errorf("%s/%s says %q, want it only in %q: elsewhere it means something else", dir, name, word, where)
				}
			}
			if system := matches("internal/...", dir) || strings.HasSuffix(name, "_linux.go"); system && dir != "internal/archtest" && dir != "internal/texts" {
				if m := kernel.Find(data); m != nil && !in(linux) {
					t.Errorf("%s/%s says %q, want Linux or the system: the kernel is yaya's", dir, name, m)
				}
			}
		}
	}
	for _, where := range append(slices.Collect(maps.Values(words)), linux) {
		for _, pattern := range where {
			if !used[pattern] {
				t.Errorf("words has an exception for %s, want none: nothing there says the word", pattern)
			}
		}
	}
	if looked < 300 {
		t.Errorf("%d files were looked at, want all", looked)
	}
}

// COD-4: the glossary has only words that the code uses, each once.
func TestGlossary(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "\n## Words\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("docs/ARCHITECTURE.md has no section Words")
	}
	var source bytes.Buffer
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			source.Write(bytes.ToLower(data))
		}
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z -]+) \| (.+) \|$`).FindAllStringSubmatch(section, -1) {
		if m[1] == "word" {
			continue
		}
		if slices.Contains(listed, m[1]) {
			t.Errorf("the glossary has %q twice, want one meaning", m[1])
		}
		listed = append(listed, m[1])
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(m[1]) + `s?\b`).Match(source.Bytes()) {
			t.Errorf("the glossary has %q, want a word of the code", m[1])
		}
	}
	if len(listed) < 20 {
		t.Errorf("the glossary has %v, want every word of the house", listed)
	}
}
