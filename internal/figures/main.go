// Command figures measures the structure of the code and holds it to limits: the length of
// files and functions, the width of interfaces, package comments, errors that lose their
// cause, init functions, and contexts in structs. It prints a table, and fails if a figure
// is beyond its limit. The exceptions stand in reasons.go, each with its reason.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	root := flag.String("root", ".", "the repository")
	flag.Parse()
	figures, err := measure(*root, runtime.GOOS)
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(2)
	}
	table(os.Stdout, figures)
	problems := check(figures, reasons)
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// table prints one line for each figure.
func table(w io.Writer, figures []*figure) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "figure\tvalue\tlimit\twhere")
	for _, f := range figures {
		limit, where := "none", f.largest
		if f.limit != unlimited {
			limit = fmt.Sprint(f.limit)
		}
		if n := len(reasons[f.name]); n > 0 {
			where = strings.TrimPrefix(fmt.Sprintf("%s; %d with a reason", where, n), "; ")
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\n", f.name, f.value, limit, where)
	}
	_ = tw.Flush()
}

// check names what is beyond its limit without a reason, and reasons for what is not.
func check(figures []*figure, reasons map[string]map[string]string) []string {
	var problems []string
	for _, f := range figures {
		for _, o := range f.over {
			if reasons[f.name][o.name] == "" {
				problems = append(problems, fmt.Sprintf("%s: %s (%s): got %d, want at most %d", o.at, o.name, f.name, o.value, f.limit))
			}
		}
		for name := range reasons[f.name] {
			if !slices.ContainsFunc(f.over, func(o finding) bool { return o.name == name }) {
				problems = append(problems, fmt.Sprintf("internal/figures/reasons.go: %s has a reason to be beyond the limit of %s, want none: it is within", name, f.name))
			}
		}
	}
	for name := range reasons {
		if !slices.ContainsFunc(figures, func(f *figure) bool { return f.name == name }) {
			problems = append(problems, fmt.Sprintf("internal/figures/reasons.go: there is no figure %q", name))
		}
	}
	slices.Sort(problems)
	return problems
}
