package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// An agent reads what its user has listed without a question, and neither other services of this machine nor yaya.
func TestAgentsReadTheWeb(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<p>a page <b>of</b> the web") })
	listed, other := httptest.NewServer(page), httptest.NewServer(page)
	defer listed.Close()
	defer other.Close()
	b := newBox(t)
	hosts, err := json.Marshal([]string{strings.TrimPrefix(listed.URL, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	b.must("config", "set", "sandbox.command.hosts", string(hosts))
	read := func(say, url string) map[string]any {
		return callsFor(say, map[string]any{"name": "web_fetch", "args": map[string]any{"url": url}})
	}
	b.scenarios(read("listed", listed.URL), read("other", other.URL), read("yaya", "http://"+b.addr+"/"))
	b.serve()
	ws := b.workspace()
	for say, want := range map[string]string{
		"listed": "a page of the web",
		"other":  "was not read: yaya does not ask about addresses outside the public internet; its user can allow it: yaya config set sandbox.command.hosts",
		"yaya":   "yaya itself listens at " + b.addr,
	} {
		if out, _ := b.outputs(b.turn(ws, say), ""); !strings.Contains(out, want) {
			t.Errorf("%s: %s, want %q", say, out, want)
		}
	}
}

// web_search comes while yaya runs, with the address of a search service, and its key goes to no other
// address.
func TestAgentsSearchTheWeb(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	searx := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.FormValue("q") + " " + r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"results":[{"url":"https://go.dev/","title":"Go","content":"a language"}]}`)
	}))
	defer searx.Close()
	b := newBox(t)
	find := callsFor("find", map[string]any{"name": "web_search", "args": map[string]any{"query": "what is go"}})
	b.scenarios(find)
	b.serve()
	ws := b.workspace()
	if out, _ := b.outputs(b.turn(ws, "find"), ""); !strings.Contains(out, "web_search") || strings.Contains(out, "go.dev") {
		t.Errorf("without a service: %s, want that there is no web_search", out)
	}
	b.must("config", "set", "plugin.tool_web.search_url", searx.URL)
	if out, err := b.typed("search-key-1\n", "config", "set", "plugin.tool_web.search_api_key", "-"); err != nil {
		t.Fatalf("the key: %v %s, want it set", err, out)
	}
	eventually.True(t, "web_search finds something", func() bool { // it comes with the event of the change
		out, _ := b.outputs(b.turn(ws, "find"), "")
		return strings.Contains(out, "https://go.dev/")
	})
	if got := <-asked; got != "what is go Bearer search-key-1" {
		t.Errorf("the service was asked %q, want the query and the key", got)
	}
	if out, err := b.run("config", "set", "plugin.tool_web.search_url", "https://evil.example"); err == nil || !strings.Contains(out, "was entered for another") {
		t.Errorf("another address for the key: %v %s, want a refusal", err, out)
	}
}
