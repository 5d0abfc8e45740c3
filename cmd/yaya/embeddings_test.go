package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A client and the page find a tool by meaning, with the embeddings of a provider; a profile's client
// only one that it may see. Nothing is sent before the setting names the provider, and while the
// provider fails, words decide, and doctor says so.
func TestSearchByMeaning(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var broken atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var in struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil || r.URL.Path != "/v1/embeddings" || in.Model != "small/en" || broken.Load() {
			http.Error(w, `{"error":{"message":"out of order"}}`, http.StatusServiceUnavailable)
			return
		}
		type vector struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var out struct {
			Data []vector `json:"data"`
		}
		for i, text := range in.Input {
			v := []float32{0, 1, 0}
			for k, word := range []string{"parrot", "echo"} { // they mean the same
				if strings.Contains(strings.ToLower(text), word) {
					v = []float32{1, 0, 0.1 * float32(k)}
				}
			}
			out.Data = append(out.Data, vector{i, v})
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	defer service.Close()

	b := newBox(t)
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b.must("provider", "add", "vectors", "--base-url", service.URL+"/v1", "--model", "chat")
	b.must("config", "set", "plugin.mcp_bridge.profiles", `{"few":{"search":true,"tools":["fx__wait"]}}`)
	b.serve("--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture, "protocolEra": "legacy"}}))
	found := func(path, query string) string {
		text, err := newRawClient(t, b.url()+path, true).text("search_tools", map[string]any{"query": query, "limit": 1})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Tools) == 0 {
			return ""
		}
		return got.Tools[0].Name
	}
	if got := found("/search", "parrot"); got != "" || asked.Load() != 0 {
		t.Errorf("without the setting: found %q with %d requests, want nothing", got, asked.Load())
	}
	for value, want := range map[string]string{`"vectors"`: "not ID/MODEL", `"nobody/m"`: "no provider", `7`: "", `"llm-echo/m"`: "llm-gemini"} {
		if out, err := b.run("config", "set", "plugin.mcp_bridge.search_embeddings", value); err == nil || !strings.Contains(out, want) {
			t.Errorf("config set %s: %v, %s, want a refusal with %q", value, err, out, want)
		}
	}
	b.must("config", "set", "plugin.mcp_bridge.search_embeddings", `"vectors/small/en"`)
	eventually.True(t, "a client finds fx__echo by meaning", func() bool { return found("/search", "parrot") == "fx__echo" })
	eventually.True(t, "the page finds fx__echo by meaning", func() bool {
		var names []string
		b.admin("GET", "/tools/search?q=parrot&limit=1", "", http.StatusOK, &names)
		return len(names) == 1 && names[0] == "fx__echo"
	})
	if got := found("/few", "parrot"); got == "fx__echo" {
		t.Errorf("a client of a profile without it finds %s", got)
	}
	if out := b.must("doctor"); strings.Contains(out, "tool-search") {
		t.Errorf("doctor has a complaint: %s", out)
	}
	broken.Store(true)
	if got := found("/search", "echo the text"); got != "fx__echo" {
		t.Errorf("while the service is broken: found %q, want fx__echo by its words", got)
	}
	if out := b.must("doctor"); !strings.Contains(out, "tool-search") || !strings.Contains(out, "out of order") {
		t.Errorf("doctor says nothing of the broken service: %s", out)
	}
}
