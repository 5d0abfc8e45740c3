package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The security model names the test of each mechanism, and each of those tests is there.
func TestSecurityModelNamesTests(t *testing.T) {
	model, err := os.ReadFile(filepath.Join(root, "docs", "SECURITY-MODEL.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := declaredTests(t)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(model, -1)
	if len(named) < 60 {
		t.Errorf("the model names %d tests, want one for each mechanism", len(named))
	}
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("the model names %s, which is not a test", m[1])
		}
	}
}

// declaredTests returns the names of all tests.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
