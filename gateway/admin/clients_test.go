package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/admin"
)

// fakeClients has one client, whose file changes as edit says.
type fakeClients struct {
	edit    admin.ClientEdit
	applied int
}

func (*fakeClients) List() []admin.ClientFile {
	return []admin.ClientFile{{Client: "cursor", Name: "Cursor", File: "/home/me/.cursor/mcp.json", Found: true}}
}

func (f *fakeClients) Prepare(client, file string, remove bool) (admin.ClientEdit, error) {
	if client != "cursor" || file != "/home/me/.cursor/mcp.json" {
		return admin.ClientEdit{}, fmt.Errorf("%w: no file %s of %s", admin.ErrRefused, file, client)
	}
	e := f.edit
	e.ClientFile = f.List()[0]
	if remove {
		e.Was, e.Now = e.Now, e.Was
	}
	return e, nil
}

// A change of a client's file is shown first, and applied once; the audit has it.
func TestClientChanges(t *testing.T) {
	w := newWorld(t)
	f := new(fakeClients)
	f.edit = admin.ClientEdit{Now: `"yaya": {}`, Apply: func(context.Context) (string, error) {
		f.applied++
		return "/home/me/.cursor/mcp.json.bak", nil
	}}
	w.admin.Clients = f
	w.rebuild()
	const path, file = "/api/clients/cursor/changes", `{"file":"/home/me/.cursor/mcp.json"}`
	w.want("GET", "/api/clients", "", 200, `"client":"cursor"`)
	w.want("POST", path, `{"file":"/etc/passwd"}`, 400, "no file /etc/passwd")
	w.want("POST", "/api/clients/other/changes", file, 400, "no file")

	var change admin.ClientChange
	if err := json.Unmarshal([]byte(w.want("POST", path, file, 202, `"now":"\"yaya\": {}"`)), &change); err != nil {
		t.Fatal(err)
	}
	if f.applied != 0 {
		t.Fatal("the file changed before anybody had seen how")
	}
	apply := "/api/client-changes/" + change.ID + "/apply"
	w.want("POST", apply, "", 200, `"backup":"/home/me/.cursor/mcp.json.bak"`)
	w.want("POST", apply, "", 404, "no such change waits")
	if f.applied != 1 {
		t.Errorf("the change was applied %d times, want once", f.applied)
	}

	f.edit.Apply = func(context.Context) (string, error) { return "", errors.New("the file has changed in the meantime") }
	if err := json.Unmarshal([]byte(w.want("POST", path, `{"file":"/home/me/.cursor/mcp.json","remove":true}`, 202, `"was"`)), &change); err != nil {
		t.Fatal(err)
	}
	w.want("POST", "/api/client-changes/"+change.ID+"/apply", "", 409, "has changed in the meantime")

	f.edit.Was = f.edit.Now
	w.want("POST", path, file, 409, "nothing to change")

	entries, err := control.AuditLog(t.Context(), w.log, control.Query{Event: "client_changed*", Limit: 10})
	if err != nil || len(entries) < 2 || entries[0].Target != "cursor" || !strings.Contains(string(entries[0].Payload), `"action":"add"`) {
		t.Errorf("AuditLog = %+v, %v, want the addition and the failure", entries, err)
	}
}

// Changes that wait are bounded.
func TestClientChangesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.admin.Clients = &fakeClients{edit: admin.ClientEdit{Now: "x"}}
	w.rebuild()
	for range 256 {
		w.want("POST", "/api/clients/cursor/changes", `{"file":"/home/me/.cursor/mcp.json"}`, 202, "")
	}
	w.want("POST", "/api/clients/cursor/changes", `{"file":"/home/me/.cursor/mcp.json"}`, 429, "wait already")
}
