package archtest

import (
	"bytes"
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

// words are those that meant more than one thing, with the folders in which they have
// their meaning or a qualified one, such as package registries.
var words = map[string][]string{
	"registry": {"kernel/...", "feature", "mcpbridge/...", "plugins/...", "internal/...", "daemon", "cmd/...", "gateway/admin", "gateway/metrics.go", "gateway/api/..."},
	"feed":     {"gateway/follow", "gateway/sessions", "gateway/wire"},
	"hub":      {"mcpbridge/servers", "internal/sandbox/credentials.go"}, // of other programs
}

// COD-4: a word means what the glossary in docs/ARCHITECTURE.md says, and nothing else
// in other folders.
func TestWordsMeanOneThing(t *testing.T) {
	looked := 0
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			looked++
			for word, where := range words {
				here := func(pattern string) bool { return matches(pattern, dir) || pattern == dir+"/"+name }
				if !slices.ContainsFunc(where, here) && regexp.MustCompile(`(?i)\b`+word+`s?\b`).Match(data) {
					t.Errorf("%s/%s says %q, which has its meaning in %v only", dir, name, word, where)
				}
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
