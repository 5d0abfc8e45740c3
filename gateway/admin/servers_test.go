package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
)

// fakeServers remembers what was done to it.
type fakeServers struct {
	done  []string
	apply error
}

func (f *fakeServers) List() []admin.Server {
	return []admin.Server{{Name: "known", State: "ready", Config: json.RawMessage(`{}`)}}
}

func (f *fakeServers) Switch(_ context.Context, _ string, _ bool, record func() error) error {
	return record()
}

func (f *fakeServers) SwitchTool(_ context.Context, _, _ string, _ bool, record func() error) error {
	return record()
}

func (f *fakeServers) Prepare(name string, config json.RawMessage, _ string) (admin.Prepared, error) {
	if string(config) == `"bad"` {
		return admin.Prepared{}, fmt.Errorf("%w: no command", admin.ErrRefused)
	}
	return admin.Prepared{Server: name, New: name != "known", Runs: "/bin/x --exactly " + string(config), Config: config, Apply: func(context.Context) error {
		f.done = append(f.done, "applied "+string(config))
		return f.apply
	}}, nil
}

func (f *fakeServers) Allow(name string, what admin.ServerPermit, remove bool) (admin.Prepared, error) {
	if name != "known" {
		return admin.Prepared{}, fmt.Errorf("%w: %s", admin.ErrUnknown, name)
	}
	return admin.Prepared{Server: name, Runs: "/bin/x", Config: json.RawMessage(`{}`), Apply: func(context.Context) error {
		f.done = append(f.done, fmt.Sprint("allowed ", what.Hosts, remove))
		return nil
	}}, nil
}

func (f *fakeServers) Remove(_ context.Context, name string) error {
	if name != "known" {
		return fmt.Errorf("%w: %s", admin.ErrUnknown, name)
	}
	f.done = append(f.done, "removed")
	return nil
}

func (f *fakeServers) Known(name string) error {
	if name != "known" && name != "waits" {
		return fmt.Errorf("%w: %s", admin.ErrUnknown, name)
	}
	return nil
}

func (f *fakeServers) Restart(context.Context, string) error {
	f.done = append(f.done, "restarted")
	return nil
}

func (f *fakeServers) Importable() []admin.Importable { return []admin.Importable{} }

func (f *fakeServers) Import(client string) ([]admin.Prepared, error) {
	a, err := f.Prepare(client+"-a", json.RawMessage(`1`), "")
	b, _ := f.Prepare(client+"-b", json.RawMessage(`2`), "")
	return []admin.Prepared{a, b}, err
}

func (f *fakeServers) Waiting() ([]admin.Waiting, error) {
	return []admin.Waiting{{Server: "known", Tools: []admin.WaitingTool{{Name: "t", Diff: "+x"}}, Digest: "d1"}}, nil
}

func (f *fakeServers) Approve(_ context.Context, server, digest string, tools []string) error {
	if digest != "d1" {
		return admin.ErrStale
	}
	f.done = append(f.done, "approved "+server+strings.Join(tools, ","))
	return nil
}

// HT-25, R18: changing what a server runs is a pending change that names it exactly; it
// happens when it is applied, once, and all of it is audited.
func TestChangesWait(t *testing.T) {
	w := newWorld(t)
	f := &fakeServers{}
	w.admin.Servers = f
	w.rebuild()
	w.want("GET", "/api/mcp/servers", "", 200, `"name":"known"`)
	w.want("POST", "/api/mcp/servers", `{"name":"known","config":{}}`, 409, "already")
	w.want("PUT", "/api/mcp/servers/new", `{"config":{}}`, 404, "no server")
	w.want("POST", "/api/mcp/servers", `{"name":"new","config":"bad"}`, 400, "no command")
	var ch admin.Change
	if err := json.Unmarshal([]byte(w.want("POST", "/api/mcp/servers", `{"name":"new","config":{"command":"x"}}`, 202, `"action":"add"`)), &ch); err != nil {
		t.Fatal(err)
	}
	if ch.Runs != `/bin/x --exactly {"command":"x"}` || ch.By != "owner" || len(f.done) != 0 {
		t.Fatalf("got %+v, done %v", ch, f.done)
	}
	w.want("GET", "/api/mcp/changes", "", 200, ch.ID)
	w.want("POST", "/api/mcp/changes/"+ch.ID+"/apply", "", 200, `--exactly {\"command\":\"x\"}`)
	w.want("POST", "/api/mcp/changes/"+ch.ID+"/apply", "", 404, "no such change") // R34: once
	if fmt.Sprint(f.done) != `[applied {"command":"x"}]` {
		t.Errorf("done: %v", f.done)
	}
	// One that is withdrawn, one that is stale, and some that were imported.
	for range 2 {
		if err := json.Unmarshal([]byte(w.want("PUT", "/api/mcp/servers/known", `{"config":{"a":1}}`, 202, `"action":"change"`)), &ch); err != nil {
			t.Fatal(err)
		}
		f.apply = admin.ErrStale
		w.want("POST", "/api/mcp/changes/"+ch.ID+"/apply", "", 409, `"server \"known\": it has changed since it was shown"`)
	}
	if err := json.Unmarshal([]byte(w.want("PUT", "/api/mcp/servers/known", `{"config":{"a":1}}`, 202, "")), &ch); err != nil {
		t.Fatal(err)
	}
	f.apply = fmt.Errorf(`%w: server "known": no command`, admin.ErrStale)
	if got := w.want("POST", "/api/mcp/changes/"+ch.ID+"/apply", "", 409, "no command"); strings.Count(got, "known") != 1 {
		t.Errorf("got %s, want the server's name once", got)
	}
	f.apply = errors.New("disk: secret path")
	if err := json.Unmarshal([]byte(w.want("PUT", "/api/mcp/servers/known", `{"config":{"a":1}}`, 202, "")), &ch); err != nil {
		t.Fatal(err)
	}
	if got := w.want("POST", "/api/mcp/changes/"+ch.ID+"/apply", "", 500, "request id req_"); strings.Contains(got, "secret") { // R37
		t.Errorf("got %s, want nothing of the secret path", got)
	}
	var all []admin.Change
	if err := json.Unmarshal([]byte(w.want("POST", "/api/mcp/import", `{"client":"Cursor"}`, 202, "Cursor-b")), &all); err != nil || len(all) != 2 {
		t.Fatalf("got %v, %v, want len(all) 2", err, all)
	}
	w.want("DELETE", "/api/mcp/changes/"+all[0].ID, "", 204, "")
	w.want("POST", "/api/mcp/changes/"+all[0].ID+"/apply", "", 404, "")

	w.want("POST", "/api/mcp/servers/known/restart", "", 204, "")
	w.want("GET", "/api/mcp/quarantine", "", 200, `"diff":"+x"`)
	w.want("POST", "/api/mcp/quarantine/known/approve", `{"digest":"other"}`, 409, "")
	w.want("POST", "/api/mcp/quarantine/known/approve", `{"digest":"d1","tools":["t"]}`, 204, "")
	for _, path := range []string{"DELETE /api/mcp/servers/nothing", "POST /api/mcp/servers/nothing/restart"} {
		method, at, _ := strings.Cut(path, " ")
		w.want(method, at, "", 404, "nothing")
	}
	w.want("PATCH", "/api/mcp/servers/nothing", `{"enabled":true}`, 404, "nothing")
	w.want("POST", "/api/mcp/quarantine/nothing/approve", `{"digest":"d1"}`, 404, "nothing")
	w.want("DELETE", "/api/mcp/servers/waits", "", 404, "waits")
	w.want("DELETE", "/api/mcp/servers/known", "", 204, "")
	if got := fmt.Sprint(f.done[len(f.done)-3:]); got != "[restarted approved knownt removed]" {
		t.Errorf("done: %s", got)
	}
	got := w.want("GET", "/api/audit?event=server_*", "", 200, `"event":"server_change_proposed","actor":"owner","target":"new"`)
	// The audit does not record a failed change as done (USE-2).
	for _, want := range []string{`"event":"server_changed","actor":"owner","target":"new"`, `exactly`, `"server_restarted"`, `"server_removed"`, `"event":"server_removed_failed","actor":"owner","target":"waits"`, `"event":"server_changed_failed","actor":"owner","target":"known"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the audit lacks %s: %s", want, got)
		}
	}
	// Its target can be anything if there is nothing of that name, such as a secret.
	if strings.Contains(got, "nothing") {
		t.Errorf("the audit has what does not exist: %s", got)
	}
	// A change that cannot be recorded does not happen (R30).
	n := len(f.done)
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	w.want("DELETE", "/api/mcp/servers/known", "", 503, "control log")
	w.want("POST", "/api/mcp/changes/"+all[1].ID+"/apply", "", 503, "control log")
	if len(f.done) != n {
		t.Errorf("done: %v", f.done)
	}
}

// A full table of changes refuses more, and says so.
func TestTooManyChanges(t *testing.T) {
	w := newWorld(t)
	w.admin.Servers, w.admin.Control = &fakeServers{}, nil
	w.rebuild()
	for range 256 {
		if code, body := w.do("POST", "/api/mcp/servers", `{"name":"new","config":{}}`); code != 202 {
			t.Fatalf("got %v, %v, want code 202", code, body)
		}
	}
	w.want("POST", "/api/mcp/servers", `{"name":"new","config":{}}`, 429, "256 changes")
}

// /api/me tells callers who they are; a stranger is nobody's owner.
func TestMe(t *testing.T) {
	w := newWorld(t)
	w.want("GET", "/api/me", "", 200, `"kind":"owner"`)
	w.who = auth.Principal{Kind: auth.External, ID: "x"}
	w.want("GET", "/api/me", "", 200, `"kind":"device","id":"x","scopes":["tools:call"]`)
}
