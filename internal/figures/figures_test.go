package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The code keeps to the limits of its structure, as Linux and macOS have it; with -short,
// as this system has it. With -v the table is shown.
func TestFigures(t *testing.T) {
	systems := []string{runtime.GOOS}
	if !testing.Short() {
		systems = []string{"linux", "darwin"}
	}
	figures, err := measure("../..", systems...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range check(figures, reasons) {
		t.Error(problem)
	}
	var b strings.Builder
	table(&b, figures)
	t.Logf("\n%s", b.String())
	for _, f := range figures {
		if f.limit > 0 && f.value < f.limit/2 {
			t.Errorf("%s = %d, want a number near its limit: was all code looked at?", f.name, f.value)
		}
	}
}

// Each figure finds what it is there for.
func TestMeasure(t *testing.T) {
	long := "func long() {\n" + strings.Repeat("\t_ = 0\n", 98) + "}\n" // 100 lines
	cases := []struct {
		name   string
		code   string
		figure string
		want   []string
	}{
		{"a long file", strings.Repeat("\n", 500), fileLength, []string{"p/p.go"}},
		{"a file within the limit", strings.Repeat("\n", 450), fileLength, nil},
		{"a long function", long, functionLength, []string{"p.long"}},
		{"a long method", "type t[K any] struct{}\n" + strings.Replace(long, "func long", "func (*t[K]) long", 1), functionLength, []string{"p.t.long"}},
		{"a function within the limit", strings.Replace(long, "\t_ = 0\n", "", 1), functionLength, nil},
		{"a wide interface", "type wide interface { A(); B(); C(); D(); E(); F(); G() }", interfaceWidth, []string{"p.wide"}},
		{"an interface of parts", "type part interface { A(); B(); C() }\ntype wide interface { part; D(); E(); F(); error }", interfaceWidth, nil},
		{"an interface of too many parts", "type part interface { A() }\ntype wide interface { part; D(); E(); F(); G(); H(); error }", interfaceWidth, []string{"p.wide"}},
		{"an interface within the limit", "type wide interface { A(); B(); C(); D(); E(); F() }", interfaceWidth, nil},
		{"an init function", "func init() {}", inits, []string{"p.init"}},
		{"a method called init", "type t struct{}\nfunc (t) init() {}", inits, nil},
		{"a context in a struct", "type t struct { a, b context.Context }", heldContexts, []string{"p.t.a", "p.t.b"}},
		{"an embedded context", "type t struct { context.Context }", heldContexts, []string{"p.t.Context"}},
		{"contexts in a map", "func f() { _ = struct{ m map[string]context.Context }{} }", heldContexts, []string{"p.f.m"}},
		{"a function that takes a context", "type t struct { f func(context.Context) }", heldContexts, nil},
		{"%v of an error", `func f() error { return fmt.Errorf("f: %v", errors.New("x")) }`, lostChains, []string{"p.f"}},
		{"%s of an error's text", `func f(err error) error { return fmt.Errorf("f: %s", err.Error()) }`, lostChains, []string{"p.f"}},
		{"%q of a type that is an error", "type e int\nfunc (e) Error() string { return \"\" }\nfunc f() error { return fmt.Errorf(\"%d %q\", 1, e(2)) }", lostChains, []string{"p.f"}},
		{"an index that is not %w's", `func f(err error) error { return fmt.Errorf("%[2]v %[1]d", 1, err) }`, lostChains, []string{"p.f"}},
		{"errors.New of a text of an error", `func f(err error) error { return errors.New("f: " + fmt.Sprint(err)) }`, lostChains, []string{"p.f"}},
		{"%w of an error", `func f(err error) error { return fmt.Errorf("100%% %*d %-5.2f %[4]w", 3, 1, 2.0, err) }`, lostChains, nil},
		{"a field of an error", "type e struct{ Text string }\nfunc (*e) Error() string { return \"\" }\nfunc f(err *e) error { return errors.New(err.Text) }", lostChains, nil},
		{"no error", `func f() error { return fmt.Errorf("%d", 1) }`, lostChains, nil},
		{"a package without a comment", "", undocumented, []string{"p"}},
	}
	root := t.TempDir() // one module, with a package for each case: the compiler is asked once
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\ngo 1.26\n")
	write("testdata/q.go", "not Go")
	for i, tc := range cases {
		comment := "// Package p is there to be measured by a test.\n"
		if tc.figure == undocumented {
			comment = "// Package p is.\n"
		}
		write(fmt.Sprintf("p%d/p.go", i), comment+"package p\nimport (\"context\"; \"errors\"; \"fmt\")\nvar _, _, _ = context.Canceled, errors.New, fmt.Sprint\n"+tc.code)
	}
	figures, err := measure(root, runtime.GOOS)
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, want := map[string][]string{}, map[string][]string{}
			for _, f := range figures {
				for _, o := range f.over {
					if name, its := strings.CutPrefix(o.name+"/", fmt.Sprintf("p%d.", i)); its {
						got[f.name] = append(got[f.name], "p."+strings.TrimSuffix(name, "/"))
					} else if name, its := strings.CutPrefix(o.name+"/", fmt.Sprintf("p%d/", i)); its {
						got[f.name] = append(got[f.name], strings.TrimSuffix("p/"+name, "/"))
					}
				}
			}
			if tc.want != nil {
				want[tc.figure] = tc.want
			}
			if !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("beyond their limits: %v, want %v", got, want)
			}
		})
	}
}

// Every finding needs a reason, and every reason a finding.
func TestCheck(t *testing.T) {
	figures := []*figure{{name: inits, over: []finding{{"a.init", "a/a.go:1", 1}, {"b.init", "b/b.go:2", 1}}}}
	got := check(figures, map[string]map[string]string{inits: {"a.init": "it is called first", "c.init": "it is gone"}, "weight": {}})
	for i, want := range []string{"b/b.go:2: b.init (init functions): got 1, want at most 0", "c.init has a reason", `there is no figure "weight"`} {
		if len(got) != 3 || !strings.Contains(got[i], want) {
			t.Errorf("problem %d of %q, want %q", i, got, want)
		}
	}
}
