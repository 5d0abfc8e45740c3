package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unusedDecisions are the numbers below the newest that no decision has. The index says so.
var unusedDecisions = []int{58}

// COD-11: docs/adr/README.md lists every decision once, in order, with the title of its file
// and a line about it.
func TestDecisions(t *testing.T) {
	dir := filepath.Join(root, "docs", "adr")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	next := 1
	for _, e := range entries { // in the order of their names, so of their numbers
		if e.Name() == "README.md" {
			continue
		}
		for slices.Contains(unusedDecisions, next) {
			next++
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		heading, _, _ := strings.Cut(string(data), "\n")
		title, ok := strings.CutPrefix(heading, fmt.Sprintf("# %d. ", next))
		if !ok || !strings.HasPrefix(e.Name(), fmt.Sprintf("%04d-", next)) {
			t.Errorf("docs/adr/%s begins with %q, want decision %d: each number has one file", e.Name(), heading, next)
		}
		want = append(want, fmt.Sprintf("| [%d](%s) | %s |", next, e.Name(), title))
		next++
	}
	if len(want) < 61 {
		t.Errorf("%d decisions were read, want all", len(want))
	}

	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^(\| \[.*\]\(.*\) \| .* \|) (.*) \|$`).FindAllStringSubmatch(string(index), -1) {
		got = append(got, m[1])
		if len(m[2]) < 20 || !strings.HasSuffix(m[2], ".") {
			t.Errorf("docs/adr/README.md says %q about %s, want a sentence", m[2], m[1])
		}
	}
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("docs/adr/README.md: line %d of the table is %q, want %q", i+1, g, w)
		}
	}
	for _, n := range unusedDecisions {
		if says := fmt.Sprintf("The number %d was never used.", n); !strings.Contains(string(index), says) {
			t.Errorf("docs/adr/README.md does not say %q", says)
		}
	}
}
