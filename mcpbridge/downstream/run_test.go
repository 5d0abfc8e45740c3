package downstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// giver stands for the tool that gives tasks to agents.
type giver struct{ run func(tool.Call) tool.Result }

func (giver) ObeysContext() {}

func (giver) Definition() tool.Definition {
	return tool.Definition{
		Name: tool.RunTool, Identity: tool.Identity{Tool: tool.RunTool}, Kind: tool.KindNetwork, Timeout: tool.OwnTimeout, Validate: true,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"],"additionalProperties":false}`),
	}
}

func (g giver) Invoke(_ context.Context, c tool.Call) (tool.Result, error) { return g.run(c), nil }

// MIS-6: callers with the scope have the tool that gives tasks to agents, in each profile that names
// it, the search included; its arguments are checked, it learns the profile, and a long task becomes
// one of the protocol.
func TestTasksForAgents(t *testing.T) {
	step := make(chan struct{})
	reg := new(tool.Registry)
	srv := downstream.New(downstream.Config{
		Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: named, TaskAfter: 50 * time.Millisecond,
		Profiles: func() (map[string]downstream.Profile, error) {
			return map[string]downstream.Profile{"none": {Tools: []string{"!yaya_run"}}, "some": {Servers: []string{"docs"}}}, nil
		},
	})
	defer srv.Close()
	srv.OfferRun(giver{func(c tool.Call) tool.Result {
		if strings.Contains(string(c.Args), "wait") {
			<-step
		}
		p, _ := c.Native.Peer.(interface{ Profile() string })
		return tool.OK("done", tool.Text(fmt.Sprintf("through %q: %s", p.Profile(), c.Args)))
	}})
	mux := http.NewServeMux()
	mux.Handle("/mcp/{profile}", srv)
	hs := httptest.NewServer(mux)
	defer hs.Close()
	ask := func(profile, who, scope, method, params string) string {
		t.Helper()
		name := ""
		if method == "tools/call" {
			name = tool.RunTool
		}
		h := modern(method, name)
		h["X-Test-Principal"], h["X-Test-Scope"] = who, scope
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
		return at(t, hs.URL+"/mcp"+profile).send("POST", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`, h).body
	}
	call := func(args string) string { return `"name":"yaya_run","arguments":` + args + `,` }
	for _, c := range []struct {
		profile, who, scope string
		want                bool
	}{
		{"/all", "token:a", "sessions:write", true},
		{"/search", "token:a", "sessions:write", true},
		{"/some", "token:a", "sessions:write", true},
		{"/none", "token:a", "sessions:write", false},
		{"/all", "token:a", "tools:call", false},
		{"/all", "server:s", "sessions:write", false},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			for range 2 { // made, and remembered
				if list := ask(c.profile, c.who, c.scope, "tools/list", ""); strings.Contains(list, `"yaya_run"`) != c.want || !json.Valid([]byte(list)) {
					t.Errorf("tools/list = %s, want yaya_run in it: %v", list, c.want)
				}
			}
			got := ask(c.profile, c.who, c.scope, "tools/call", call(`{"prompt":"x"}`))
			if strings.Contains(got, `through \"`+c.profile[1:]) != c.want {
				t.Errorf("tools/call = %s, want that it runs through the profile: %v", got, c.want)
			}
		})
	}
	for name, args := range map[string]string{"no prompt": `{}`, "another type": `{"prompt":1}`, "another member": `{"prompt":"x","Prompt":"y"}`} {
		if got := ask("/all", "token:a", "sessions:write", "tools/call", call(args)); !strings.Contains(got, "invalid arguments") {
			t.Errorf("%s: %s, want that the arguments are invalid", name, got)
		}
	}
	began := ask("/all", "token:a", "sessions:write", "tools/call", call(`{"prompt":"wait"}`))
	id := regexp.MustCompile(`"taskId":"([^"]+)"`).FindStringSubmatch(began)
	if len(id) != 2 {
		t.Fatalf("a long task = %s, want one of the protocol", began)
	}
	close(step)
	eventually.True(t, "the task has its result", func() bool {
		got := ask("/all", "token:a", "sessions:write", "tasks/get", `"taskId":"`+id[1]+`",`)
		return strings.Contains(got, `"status":"completed"`) && strings.Contains(got, "through")
	})
}

// MIS-6: the tools of an agent are those that its client's profile shows, those that only agents have
// by their names; a profile that is gone, or is not the caller's, shows nothing.
func TestSeesOfAProfile(t *testing.T) {
	reg := new(tool.Registry)
	srv := downstream.New(downstream.Config{
		Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: named,
		Profiles: func() (map[string]downstream.Profile, error) {
			return map[string]downstream.Profile{"docs": {Servers: []string{"docs"}, Tools: []string{"read_*", "docs__*", "!docs__secret"}}, "his": {Principal: []string{"token:b"}}}, nil
		},
	})
	defer srv.Close()
	who := tool.Caller{Principal: "token:a"}
	sees, err := srv.Sees("docs", who)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"read_file": true, "shell": false, "docs__find": true, "docs__secret": false, "fs__read": false} {
		server, _, found := strings.Cut(name, "__")
		def := tool.Definition{Name: name, Identity: tool.Identity{Tool: name}, ForAgents: !found}
		if found {
			def.Identity.Provider = server
		}
		if got := sees(&def); got != want {
			t.Errorf("%s is seen: %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"gone", "his"} {
		if _, err := srv.Sees(name, who); err == nil {
			t.Errorf("the profile %q can be used, want an error", name)
		}
	}
}
