package downstream_test

import (
	"strings"
	"testing"
)

// SEC-5: a server that may call tools of others has their tools alone, in both eras: a
// person is asked about calls, and about nothing else of the protocol.
func TestServersHaveToolsAlone(t *testing.T) {
	w := newWorld(t)
	const who = "server:own"
	session := w.session(who, "")
	quiet := func(t *testing.T, what string) {
		t.Helper()
		if got := append(w.not.taken(), w.own.taken()...); len(got) > 0 {
			t.Errorf("%s reaches servers: %q", what, got)
		}
	}
	eras := map[string]func(method, params string) answer{
		"modern": func(method, params string) answer { return w.modern(who, "", method, params) },
		"legacy": func(method, params string) answer { return w.legacy(session, "", method, params) },
	}
	for era, send := range eras {
		for _, c := range []struct{ method, params string }{
			{"prompts/list", ``},
			{"prompts/get", `"name":"not__p"`},
			{"resources/list", ``},
			{"resources/templates/list", ``},
			{"resources/read", `"uri":"not://r"`},
			{"resources/read", `"uri":"yaya://not/file:%2F%2F%2Fetc%2Fpasswd"`},
			{"resources/subscribe", `"uri":"not://r"`},
			{"resources/unsubscribe", `"uri":"not://r"`},
			{"subscriptions/listen", `"notifications":{"resourceSubscriptions":["not://r"]}`},
			{"completion/complete", `"ref":{"type":"ref/prompt","name":"not__p"},"argument":{"name":"a","value":""}`},
			{"logging/setLevel", `"level":"debug"`},
			{"tasks/get", `"taskId":"not~1"`},
			{"tasks/update", `"taskId":"not~1","inputResponses":{}`},
			{"tasks/cancel", `"taskId":"not~1"`},
			{"not/run", ``},
			{"skills/run", `"name":"not__t"`},
			{"skills/run", `"name":"own__open"`},
			{"sampling/createMessage", ``},
			{"elicitation/create", ``},
			{"roots/list", ``},
		} {
			t.Run(era+"/"+c.method, func(t *testing.T) {
				a := send(c.method, c.params)
				if !strings.Contains(a.body, `"code":-32601`) || strings.Contains(a.body, "SECRET") {
					t.Errorf("got %d %s, want that the method is not for servers", a.status, a.body)
				}
				if !strings.HasPrefix(a.body, "{") {
					t.Errorf("got %q, want an answer without a stream", a.body)
				}
				quiet(t, c.method)
			})
		}
		t.Run(era+"/tools", func(t *testing.T) {
			if a := send("tools/list", ``); !strings.Contains(a.body, `"not__t"`) || strings.Contains(a.body, `"own__`) {
				t.Errorf("tools/list: got %d %s, want the tools of others without its own", a.status, a.body)
			}
			if a := send("tools/call", `"name":"not__t","arguments":{}`); !strings.Contains(a.body, "not__t needs approval") {
				t.Errorf("a call of another's tool: got %d %s, want that somebody is asked", a.status, a.body)
			}
			for _, params := range []string{
				`"name":"own__open","arguments":{}`, `"name":"not__t","arguments":{},"requestState":"x"`,
				`"name":"not__t","arguments":{},"inputResponses":{}`, `"name":"not__t","arguments":{},"task":{}`,
			} {
				if a := send("tools/call", params); strings.Contains(a.body, "SECRET") {
					t.Errorf("tools/call with %s: got %d %s, want it refused", params, a.status, a.body)
				}
				quiet(t, params)
			}
		})
	}
	for what, a := range map[string]answer{
		"initialize":      at(t, w.url).send("POST", initialize, map[string]string{"X-Test-Principal": who}),
		"server/discover": w.modern(who, "", "server/discover", ""),
	} {
		if !strings.Contains(a.body, `"capabilities":{"tools":{}}`) || strings.Contains(a.body, "SECRET") {
			t.Errorf("%s: got %d %s, want tools alone", what, a.status, a.body)
		}
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/skills/run","params":{"name":"t"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`,
	} {
		at(t, w.url).send("POST", body, session)
		quiet(t, body)
	}
	if a := at(t, w.url).send("GET", "", session); a.status != 405 {
		t.Errorf("GET: got %d %s, want 405", a.status, a.body)
	}
}
