package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// COD-4: docs/ARCHITECTURE.md says that what is below internal imports no package
// of ours outside it. The table of arrows must not allow what this sentence denies.
func TestInternalImportsInternal(t *testing.T) {
	looked := 0
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		if !strings.HasPrefix(from, "internal/") {
			continue
		}
		looked++
		for _, imp := range p.Imports {
			if to, ours := strings.CutPrefix(imp, module+"/"); ours && !strings.HasPrefix(to, "internal/") {
				t.Errorf("%s imports %s, want nothing of ours outside internal", from, to)
			}
		}
	}
	if looked < 40 {
		t.Errorf("%d packages were looked at, want all below internal", looked)
	}
}

// registers are the names of methods by which a later part registers with an earlier one.
var registers = regexp.MustCompile(`^(On[A-Z]\w*|onStopped|AddAudience|AddHook|SetApprover|SetGate|SetWitness|SetApprovalTimeout|Attach|Offer)$`)

// COD-4: docs/ARCHITECTURE.md lists every registration that the daemon makes, and no other.
func TestRegistrations(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, sentence, found := strings.Cut(string(data), "Where an earlier part has to call a later one, ")
	sentence, _, ended := strings.Cut(sentence, "\n")
	if !found || !ended {
		t.Fatal(`docs/ARCHITECTURE.md has no sentence "Where an earlier part has to call a later one, …"`)
	}
	var listed []string
	for _, m := range spans.FindAllStringSubmatch(sentence, -1) {
		listed = append(listed, m[1][strings.LastIndex(m[1], ".")+1:])
	}
	files, err := filepath.Glob(filepath.Join(root, "daemon", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && registers.MatchString(s.Sel.Name) && !notRegistration(s) {
				made = append(made, s.Sel.Name)
			}
			return true
		})
	}
	slices.Sort(listed)
	slices.Sort(made)
	if made = slices.Compact(made); !slices.Equal(listed, made) {
		t.Errorf("docs/ARCHITECTURE.md lists the registrations %q, want those that daemon makes, %q", listed, made)
	}
}

// notRegistration tells calls apart that have such a name and do something else: a client
// attaches to a session or a gateway, and the bridge gets a status.
func notRegistration(s *ast.SelectorExpr) bool {
	if s.Sel.Name == "OnStatus" {
		return true
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		return s.Sel.Name == "Attach" && x.Name == "client"
	case *ast.SelectorExpr:
		return s.Sel.Name == "Attach" && x.Sel.Name == "Sessions"
	}
	return false
}

// qualified is the name of something in a package, such as tool.Registry.
var qualified = regexp.MustCompile(`^([a-z]\w*(?:/\w+)*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)$`)

// COD-4: files, folders and declarations that docs/ARCHITECTURE.md names are there.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string][]string{} // of packages, by the last elements of their path
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		for part := path; ; {
			dirs[part] = append(dirs[part], p.Dir)
			_, rest, more := strings.Cut(part, "/")
			if !more {
				break
			}
			part = rest
		}
	}
	var named []string
	for line := range strings.Lines(string(data)) { // a fence has three quotes
		for _, m := range spans.FindAllStringSubmatch(line, -1) {
			named = append(named, m[1])
		}
	}
	looked := 0
	for _, name := range named {
		if pathLike.MatchString(name) && !strings.Contains(name, ".json") && !regexp.MustCompile(`^control/segments/$`).MatchString(name) {
			looked++
			if q := qualified.FindStringSubmatch(name); q == nil || filepath.Ext(name) == ".go" {
				if found, err := filepath.Glob(filepath.Join(root, name)); err != nil || len(found) == 0 {
					t.Errorf("docs/ARCHITECTURE.md names %s, want a file or a folder that is there", name)
				}
				continue
			}
		}
		q := qualified.FindStringSubmatch(name)
		if q == nil || len(dirs[q[1]]) == 0 || filepath.Ext(name) == ".go" {
			continue
		}
		looked++
		if !slices.ContainsFunc(dirs[q[1]], func(dir string) bool { return declares(t, dir, q[2]) }) {
			t.Errorf("docs/ARCHITECTURE.md names %s, want something that %s declares", name, q[1])
		}
	}
	if looked < 60 {
		t.Errorf("%d names were looked at, want 60 or more", looked)
	}
}
