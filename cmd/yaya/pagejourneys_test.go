package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// From the catalogue to the first call, with a server that npm publishes: found, asked for its
// values, seen as what it would run, added, called. npx finds the package in the folder in which
// yaya runs, and is told to fetch nothing.
func TestPageInstallsFromNPM(t *testing.T) {
	t.Parallel()
	needPeers(t)
	b := newBox(t)
	b.cwd = filepath.Dir(peers)
	if err := os.WriteFile(filepath.Join(b.dir, ".npmrc"), []byte("offline=true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(peerPath(t, "server-filesystem", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var pack struct{ Name, Version string }
	if err := json.Unmarshal(raw, &pack); err != nil {
		t.Fatal(err)
	}
	r := newMCPRegistry(t, fmt.Sprintf(`{"name":"io.github.sky/files","title":"Files","description":"Files of a folder","version":%[2]q,"packages":[{"registryType":"npm","identifier":%[1]q,"version":%[2]q,
"packageArguments":[{"type":"positional","valueHint":"folder","format":"filepath","isRequired":true,"description":"Folder that it may use"}],
"environmentVariables":[{"name":"FILES_KEY","isRequired":true,"isSecret":true,"description":"Key of the service"},{"name":"FILES_MODE","default":"plain","choices":["plain","fancy"]}]}]}`, pack.Name, pack.Version))
	b.must("config", "set", "catalog.registries", `["team=`+r.URL+`"]`)
	b.serve()
	ws := b.workspace()
	file := filepath.Join(b.dir, "c", "mcp.json")
	b.scenario("installs", map[string]any{"secret": skySecret, "folder": ws, "runs": "npx -y " + pack.Name + "@" + pack.Version + " " + ws}, map[string]func(string) (any, error){
		"added": func(string) (any, error) {
			_, err := os.Stat(file)
			return err == nil, nil //nolint:nilerr // it is not there yet
		},
		"sets": func(name string) (any, error) { return b.secret(name, "set-by-hand-of-the-user-7"), nil },
		"rules": func(string) (any, error) {
			var all []admin.Setting
			b.admin("GET", "/settings", "", 200, &all)
			i := slices.IndexFunc(all, func(s admin.Setting) bool { return s.Key == "approval.rules" })
			if i < 0 || len(all[i].Value) == 0 {
				return []any{}, nil
			}
			return all[i].Value, nil
		},
	})
	if all := b.holding(skySecret); len(all) > 0 {
		t.Errorf("the secret is in %q, want it in the store alone", all)
	}
}

// A server that fails says why on its page, with the line of its output; its entry is mended in
// the form, and it works.
func TestPageMendsServer(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	ws := b.workspace()
	gone := filepath.Join(b.dir, "gone")
	b.must("mcp", "add", "fs", "--", node, peerPath(t, "server-filesystem", "dist", "index.js"), gone)
	b.serve()
	b.server("fs", "failed")
	b.scenario("mends", map[string]any{"gone": gone, "folder": ws}, nil)
}

// A tool that is switched off on the page is gone for a client that is connected: it is told,
// lists no such tool, and is refused a call with the reason. Switched on, it is back.
func TestPageSwitchesTool(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.goodAndBad()
	b.serve()
	b.server("srv", "ready")
	told := make(chan struct{}, 1)
	c := sdk.NewClient(&sdk.Implementation{Name: "a-client", Version: "1"}, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
		select {
		case told <- struct{}{}:
		default: // it will look anyway
		}
	}})
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	// lists waits for a notification after which the tool is listed, or is not.
	lists := func(tool string, want bool) (any, error) {
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
		defer cancel()
		for {
			select {
			case <-told:
			case <-ctx.Done():
				return nil, fmt.Errorf("no notification after which %s is listed: %v", tool, want)
			}
			all, err := session.ListTools(ctx, nil)
			if err != nil {
				return nil, err
			}
			has := func(name string) bool {
				return slices.ContainsFunc(all.Tools, func(x *sdk.Tool) bool { return x.Name == name })
			}
			if has("srv__bad") && has(tool) == want { // its server has started again
				return true, nil
			}
		}
	}
	b.scenario("switches", nil, map[string]func(string) (any, error){
		"gone": func(tool string) (any, error) { return lists(tool, false) },
		"back": func(tool string) (any, error) { return lists(tool, true) },
		"call": func(tool string) (any, error) {
			r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool})
			if err != nil {
				return err.Error(), nil //nolint:nilerr // the refusal is what is looked at
			}
			text, _ := r.Content[0].(*sdk.TextContent)
			return text.Text, nil
		},
	})
}
