package archtest

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "draw the pictures of docs/ARCHITECTURE.md again")

// house says what each folder of the first picture is.
var house = map[string]string{
	"cmd/yaya":  "flags, printing, exit codes",
	"daemon":    "puts all parts together, serves them",
	"gateway":   "HTTP and WebSockets: /v1, /api, /ws, the page",
	"mcpbridge": "MCP servers on one side, MCP clients on the other",
	"plugins":   "strategies, models, memory, tools of agents",
	"auth":      "who somebody is, and may do",
	"control":   "the log of devices, keys, agents, skills",
	"feature":   "what offers tools, and its restarts",
	"kernel":    "sessions, turns, tools, approvals, models",
}

// picture is one drawing: nodes, and what each may import.
type picture map[string][]string

// fold draws the folders of the house, each as one node.
func fold() picture {
	pic := picture{}
	top := func(path string) string {
		for folder := range house {
			if path == folder || strings.HasPrefix(path, folder+"/") {
				return folder
			}
		}
		return ""
	}
	for from, may := range allowed {
		if strings.HasSuffix(from, "test") || top(from) == "" {
			continue // for tests; an example, or internal
		}
		from = top(from)
		pic[from] = append([]string{}, pic[from]...)
		for _, pattern := range may {
			if to := top(strings.TrimSuffix(pattern, "/...")); to != "" && to != from {
				pic[from] = append(pic[from], to)
			}
		}
	}
	return pic
}

// rooms draws the packages of one folder. A pattern stands for what is imported of it.
func rooms(pkgs []pkg, folder string) picture {
	pic := picture{}
	for _, p := range pkgs {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		if !matches(folder+"/...", from) || strings.HasSuffix(from, "test") || len(p.GoFiles) == 0 {
			continue
		}
		pic[from] = nil
		for _, pattern := range allowed[from] {
			if !strings.Contains(pattern, "...") {
				pic[from] = append(pic[from], pattern)
				continue
			}
			for _, imp := range p.Imports {
				if to := strings.TrimPrefix(imp, module+"/"); to != imp && matches(pattern, to) {
					pic[from] = append(pic[from], to)
				}
			}
		}
	}
	for from, may := range pic {
		pic[from] = slices.DeleteFunc(may, func(to string) bool { _, here := pic[to]; return !here })
	}
	return pic
}

// reaches reports whether a node may be imported from another one, by way of others.
func (pic picture) reaches(from, to string) bool {
	return slices.ContainsFunc(pic[from], func(next string) bool { return next == to || pic.reaches(next, to) })
}

// reduced returns the picture without arrows that follow from others.
func (pic picture) reduced() picture {
	out := picture{}
	for from, may := range pic {
		out[from] = nil
		for _, to := range slices.Sorted(slices.Values(may)) {
			longer := func(by string) bool { return by != to && pic.reaches(by, to) }
			if !slices.Contains(out[from], to) && !slices.ContainsFunc(may, longer) {
				out[from] = append(out[from], to)
			}
		}
	}
	return out
}

// depth is how many nodes may stand above one.
func (pic picture) depth(node string) int {
	deepest := 0
	for from, may := range pic {
		if slices.Contains(may, node) {
			deepest = max(deepest, 1+pic.depth(from))
		}
	}
	return deepest
}

// mermaid writes the picture from top to bottom.
func (pic picture) mermaid(folder string) string {
	id := strings.NewReplacer("/", "_", "-", "_").Replace
	nodes := slices.SortedFunc(maps.Keys(pic), func(a, b string) int {
		if d := pic.depth(a) - pic.depth(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, node := range nodes {
		label := strings.TrimPrefix(node, folder+"/")
		if what := house[node]; what != "" && folder == "" {
			label += "<br>" + what
		}
		fmt.Fprintf(&b, "    %s[\"%s\"]\n", id(node), label)
	}
	for _, from := range nodes {
		for _, to := range pic[from] {
			fmt.Fprintf(&b, "    %s --> %s\n", id(from), id(to))
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// The pictures of docs/ARCHITECTURE.md show what the table of arrows allows.
func TestPicture(t *testing.T) {
	for _, folder := range []string{"", "kernel", "gateway", "mcpbridge"} {
		t.Run("picture of "+cmp.Or(folder, "the house"), func(t *testing.T) {
			pic := fold()
			if folder != "" {
				pic = rooms(packages(t), folder)
			}
			for node := range pic {
				if pic.reaches(node, node) {
					t.Fatalf("%s may be imported by what it imports: %v", node, pic)
				}
			}
			name := strings.TrimSpace("picture " + folder)
			drawn(t, name, "\n"+pic.reduced().mermaid(folder))
		})
	}
	for folder := range house {
		if _, ok := fold()[folder]; !ok {
			t.Errorf("the house has %s, which the table of arrows does not know", folder)
		}
	}
	for from := range allowed {
		top, _, _ := strings.Cut(from, "/")
		if _, known := house[from]; !known && house[top] == "" && top != "internal" && top != "examples" && top != "sdk" && !strings.HasPrefix(from, "cmd/yaya/") {
			t.Errorf("the house has no %s: say in its table what that is", from)
		}
	}
}

// Arrows that follow from others are left out, and nothing else is.
func TestReduced(t *testing.T) {
	pic := picture{"a": {"b", "c", "d", "b"}, "b": {"c"}, "c": nil, "d": {"c"}}
	got := fmt.Sprint(pic.reduced())
	if want := fmt.Sprint(picture{"a": {"b", "d"}, "b": {"c"}, "c": nil, "d": {"c"}}); got != want {
		t.Errorf("reduced() = %s, want %s", got, want)
	}
}

// drawn compares what stands between the markers of a part of docs/ARCHITECTURE.md with
// what the part has to be, or writes it.
func drawn(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(root, "docs", "ARCHITECTURE.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": written by TestPicture -->\n", "<!-- end of "+name+" -->"
	before, rest, begun := strings.Cut(string(data), begin)
	got, after, ended := strings.Cut(rest, end)
	switch {
	case !begun || !ended:
		t.Fatalf("docs/ARCHITECTURE.md has no place for the %s: want %q and %q", name, begin, end)
	case got == want:
	case !*updateDocs:
		t.Errorf("the %s in docs/ARCHITECTURE.md is stale: go test ./internal/archtest -run TestPicture -update-docs\ngot:%s\nwant:%s", name, got, want)
	default:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
