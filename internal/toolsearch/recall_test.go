package toolsearch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/toolsearch"
)

// published returns the tools of testdata, and the names that clients see.
func published(tb testing.TB) (tools []toolsearch.Tool, names []string) {
	tb.Helper()
	f, err := os.Open("testdata/tools.json.gz")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var set struct {
		Servers []struct {
			Name  string
			Tools []struct {
				Name, Title, Description string
				Arguments                map[string]string
			}
		}
	}
	if err := json.NewDecoder(z).Decode(&set); err != nil {
		tb.Fatal(err)
	}
	for _, s := range set.Servers {
		for _, t := range s.Tools {
			tool := toolsearch.Tool{Server: s.Name, Name: t.Name, Title: t.Title, Description: t.Description}
			for _, name := range slices.Sorted(maps.Keys(t.Arguments)) {
				tool.Arguments = append(tool.Arguments, toolsearch.Argument{Name: name, Description: t.Arguments[name]})
			}
			tools = append(tools, tool)
			names = append(names, s.Name+"__"+t.Name)
		}
	}
	return tools, names
}

// measure is how well queries are answered.
type measure struct {
	queries int
	found   float64 // share of queries with a right tool among the first five
	recall  float64 // mean share of the right tools (at most five) among the first five
	mrr     float64 // mean of 1 divided by the place of the first right tool
}

func (m *measure) add(got, want []string) {
	first, right := 0, 0
	for i, name := range got {
		if slices.Contains(want, name) {
			if first == 0 {
				first = i + 1
			}
			if i < 5 {
				right++
			}
		}
	}
	m.queries++
	if right > 0 {
		m.found++
	}
	if first > 0 {
		m.mrr += 1 / float64(first)
	}
	m.recall += float64(right) / float64(min(5, len(want)))
}

func (m *measure) mean() measure {
	n := float64(m.queries)
	return measure{m.queries, m.found / n, m.recall / n, m.mrr / n}
}

// The ranking finds the tools of published servers. testdata/README.md says how the queries were
// made; the floors are slightly below what was measured.
func TestRecall(t *testing.T) {
	tools, names := published(t)
	if len(tools) != 1000 {
		t.Fatalf("testdata has %d tools, want 1000", len(tools))
	}
	x := toolsearch.New(tools)
	floors := map[string]measure{
		"tuning": {100, 0.95, 0.82, 0.80}, "held out": {100, 0.90, 0.83, 0.80}, "oblique": {65, 0.80, 0.71, 0.66}, "unseen": {70, 0.84, 0.74, 0.66},
	}
	for set, got := range recall(t, names, func(query string) []int { return x.Search(query, 50) }) {
		if f := floors[set]; got.queries != f.queries || got.found < f.found || got.recall < f.recall || got.mrr < f.mrr {
			t.Errorf("%s: got %+v, want at least %+v", set, got, f)
		}
	}
}

// recall measures a search by the sets of testdata.
func recall(t *testing.T, names []string, search func(query string) []int) map[string]measure {
	t.Helper()
	all := map[string]measure{}
	for _, set := range []struct {
		name, file  string
		first, step int // the lines of the file
	}{{"tuning", "queries.txt", 0, 2}, {"held out", "queries.txt", 1, 2}, {"oblique", "oblique.txt", 0, 1}, {"unseen", "unseen.txt", 0, 1}} {
		text, err := os.ReadFile("testdata/" + set.file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		var sum measure
		for i := set.first; i < len(lines); i += set.step {
			query, right, ok := strings.Cut(lines[i], " | ")
			want := strings.Fields(right)
			if !ok || len(want) == 0 {
				t.Fatalf("%s:%d: no tools in %q", set.file, i+1, lines[i])
			}
			for _, name := range want {
				if !slices.Contains(names, name) {
					t.Fatalf("%s:%d: testdata has no tool %q", set.file, i+1, name)
				}
			}
			var got []string
			for _, place := range search(query) {
				got = append(got, names[place])
			}
			sum.add(got, want)
		}
		got := sum.mean()
		t.Logf("%s: %d queries, found@5 %.3f, recall@5 %.3f, MRR %.3f", set.name, got.queries, got.found, got.recall, got.mrr)
		all[set.name] = got
	}
	return all
}

// remote is a service with OpenAI's API for embeddings.
type remote struct{ address, model string }

func (r remote) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": r.model, "input": texts})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.address+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Data []struct{ Embedding []float32 }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	var out [][]float32
	for _, d := range answer.Data {
		out = append(out, d.Embedding)
	}
	if len(out) != len(texts) {
		return nil, fmt.Errorf("%s: %d vectors for %d texts", resp.Status, len(out), len(texts))
	}
	return out, nil
}

// The figures of docs/MCP.md with embeddings are those that this test logs, of a service at
// YAYA_EMBEDDINGS_URL, which knows the model YAYA_EMBEDDINGS_MODEL.
func TestRecallWithEmbeddings(t *testing.T) {
	r := remote{os.Getenv("YAYA_EMBEDDINGS_URL"), os.Getenv("YAYA_EMBEDDINGS_MODEL")}
	if r.address == "" {
		t.Skip("set YAYA_EMBEDDINGS_URL to the base URL of a service with OpenAI's API for embeddings")
	}
	tools, names := published(t)
	x := toolsearch.New(tools)
	e := toolsearch.NewEmbeddings(toolsearch.Config{Model: func() toolsearch.Model { return r }, Conceal: func(s string) string { return s }})
	defer http.DefaultClient.CloseIdleConnections()
	defer e.Close()
	if err := e.Fill(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	recall(t, names, func(query string) []int {
		e.Ask(t.Context(), query)
		return e.Search(t.Context(), x, query, 50)
	})
}
