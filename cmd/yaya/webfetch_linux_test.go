package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
