package manage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bridge notes what is started and stopped.
type bridge struct {
	mu   sync.Mutex
	runs map[string]servers.Server
	did  []string
	bad  []servers.Invalid
}

func (b *bridge) note(verb, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.did = append(b.did, verb+" "+name)
}

// takes returns what was done since it was asked last.
func (b *bridge) takes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.did
	b.did = nil
	return out
}

func (b *bridge) Add(_ context.Context, s servers.Server) []string {
	b.mu.Lock()
	b.runs[s.Name] = s
	b.mu.Unlock()
	b.note("start", s.Name)
	return nil
}

func (b *bridge) Remove(name string) bool {
	b.mu.Lock()
	_, ran := b.runs[name]
	delete(b.runs, name)
	b.mu.Unlock()
	if ran {
		b.note("stop", name)
	}
	return ran
}

func (b *bridge) Invalid(inv servers.Invalid) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bad = append(b.bad, inv)
}

func (b *bridge) InvalidServers() []servers.Invalid {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.bad)
}

func (b *bridge) Loaded() bool { return true }

func (b *bridge) Runs(s servers.Server) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ran, ok := b.runs[s.Name]
	return ok && same(ran, s)
}

func same(a, b servers.Server) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// rig is a manager of a configuration of its own.
type rig struct {
	*manage.Manager
	t       *testing.T
	file    string // of the servers
	project string // the folder whose servers are offered
	home    string
	bridge  *bridge // nil if nothing runs
	folders *folder.Store
}

type option func(*manage.Config, *rig)

// alone is a manager of a command without a daemon.
func alone(c *manage.Config, r *rig) { c.Bridge, c.Host, r.bridge = nil, nil, nil }

func (r *rig) write(path, content string) {
	r.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read() string {
	r.t.Helper()
	data, err := os.ReadFile(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// start manages a configuration that holds these entries, and the folder's.
func start(t *testing.T, entries, project string, options ...option) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, file: filepath.Join(dir, "config", "mcp.json"), project: filepath.Join(dir, "project"), home: filepath.Join(dir, "home"), bridge: &bridge{runs: map[string]servers.Server{}}}
	r.write(r.file, `{"mcpServers":{`+entries+`}}`)
	for _, d := range []string{r.project, r.home, filepath.Join(dir, "data")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if project != "" {
		r.write(filepath.Join(r.project, ".mcp.json"), `{"mcpServers":{`+project+`}}`)
	}
	data, err := os.OpenRoot(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	seen := new(manage.Digests)
	r.folders = folder.NewStore(data, nil, func(w *workspace.Workspace) ([]folder.Item, error) { return seen.Items(w, nil) })
	l, err := manage.Load(r.file, nil)
	if err == nil {
		err = l.Here(nil, r.project, r.folders)
	}
	if err != nil {
		t.Fatal(err)
	}
	registry := new(tool.Registry)
	host := feature.NewHost(feature.Config{Registry: registry, Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: registry})})
	cfg := manage.Config{
		File: r.file, Own: true, Here: r.project, Home: r.home, Data: data.Name(), Ungiven: func() (folders, files []string) { return []string{data.Name()}, nil },
		Folders: r.folders, Trust: trust.NewStore(data), Permits: manage.NewPermits(data.Name()),
		Secret: func(name string) (string, error) { return "", fmt.Errorf("there is no secret %q", name) },
		Bridge: r.bridge, Host: host, Log: zerolog.Nop(),
	}
	for _, o := range options {
		o(&cfg, r)
	}
	if r.bridge != nil { // as the daemon starts what was loaded
		for _, s := range l.Servers {
			r.bridge.runs[s.Name] = s
		}
	}
	r.Manager = manage.New(cfg, l)
	t.Cleanup(func() {
		r.Close()
		if err := errors.Join(host.Close(context.Background()), data.Close()); err != nil {
			t.Errorf("Close of the host and the data folder = %v, want no error", err)
		}
	})
	return r
}

// did checks the calls of the bridge since the last check.
func (r *rig) did(want ...string) {
	r.t.Helper()
	got := r.bridge.takes()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("the bridge got %q, want %q", got, want)
	}
}

// state is that of a server in the list, "" if it is not there.
func (r *rig) state(name string) string {
	for _, s := range r.List() {
		if s.Name == name {
			return s.State
		}
	}
	return ""
}

// does waits for one call of the bridge, and for nothing else.
func (r *rig) does(want string) {
	r.t.Helper()
	eventually.True(r.t, "the bridge gets "+want, func() bool {
		r.bridge.mu.Lock()
		defer r.bridge.mu.Unlock()
		return len(r.bridge.did) > 0
	})
	r.did(want)
}

func (r *rig) revision(name string) string {
	for _, s := range r.List() {
		if s.Name == name {
			return s.Revision
		}
	}
	return ""
}

func wantError(t *testing.T, what string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("%s: got %v, want one of kind %q with %q in it", what, err, kind, text)
	}
}

const one = `"one":{"command":"cat"}`

// Apply makes exactly the change that Prepare showed, and only if nothing has changed since.
func TestPreparedChanges(t *testing.T) {
	r := start(t, one, "")
	p, err := r.Prepare("two", json.RawMessage(`{"command":"cat","args":["-u"],"env":{"TOKEN":"s3cret-value"}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if !p.New || p.Runs != "cat -u with TOKEN" || strings.Contains(string(p.Config), "s3cret") {
		t.Errorf("Prepare() = %+v with %s, want a new server, what it runs, and no secret", p, p.Config)
	}
	if r.did(); strings.Contains(r.read(), "two") {
		t.Error("a change that was only prepared is in the file")
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.did("start two")
	if !strings.Contains(r.read(), `"two"`) {
		t.Errorf("the file is %s, want the server two in it", r.read())
	}
	was := r.revision("two")
	first, err := r.Prepare("two", json.RawMessage(`{"command":"cat","args":["a"]}`), was)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.Prepare("two", json.RawMessage(`{"command":"cat","args":["b"]}`), was)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.did("stop two", "start two")
	wantError(t, "the second of two changes", second.Apply(t.Context()), manage.ErrStale, "was changed since this was proposed")
	_, err = r.Prepare("two", json.RawMessage(`{"command":"cat"}`), was)
	wantError(t, "a change of a former configuration", err, manage.ErrStale, "was changed meanwhile")
	r.did()
}

// An entry that its user has edited in the file, and that is not taken over, is never
// written over.
func TestEditedEntriesStay(t *testing.T) {
	r := start(t, one, "")
	p, err := r.Prepare("one", json.RawMessage(`{"command":"cat","args":["a"]}`), "")
	if err != nil {
		t.Fatal(err)
	}
	edited := `{"mcpServers":{"one":{"command":"cat","args":["by hand"]}}}`
	r.write(r.file, edited)
	wantError(t, "Apply()", p.Apply(t.Context()), manage.ErrStale, "was edited, and yaya has not read the edit yet")
	if got := r.read(); got != edited {
		t.Errorf("the file is %s, want %s", got, edited)
	}
	r.did()
}

func TestSwitchRemoveRestart(t *testing.T) {
	r := start(t, one, "")
	ctx := t.Context()
	if err := r.Switch(ctx, "one", false, recorded); err != nil {
		t.Fatal(err)
	}
	if state := r.state("one"); state != "disabled" || !strings.Contains(r.read(), "disabled") {
		t.Errorf("the server is %q and the file %s, want it disabled in both", state, r.read())
	}
	wantError(t, "Restart() of a disabled server", r.Restart(ctx, "one"), manage.ErrRefused, "is disabled")
	if err := r.Switch(ctx, "one", true, recorded); err != nil {
		t.Fatal(err)
	}
	r.bridge.takes()
	if err := r.Restart(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	r.did("stop one", "start one")
	if err := r.Remove("one"); err != nil {
		t.Fatal(err)
	}
	r.did("stop one")
	if state := r.state("one"); state != "" || strings.Contains(r.read(), "one") {
		t.Errorf("the server is %q and the file %s, want it gone from both", state, r.read())
	}
	for name, f := range map[string]func() error{
		"Remove()":  func() error { return r.Remove("one") },
		"Restart()": func() error { return r.Restart(ctx, "one") },
		"Switch()":  func() error { return r.Switch(ctx, "one", true, recorded) },
	} {
		wantError(t, name+" of a server that is not there", f(), manage.ErrUnknown, `there is no server "one"`)
	}
}

// Servers of files that were named are not the manager's to change.
func TestNamedFilesStay(t *testing.T) {
	r := start(t, one, "", func(c *manage.Config, _ *rig) { c.Own = false })
	_, err := r.Prepare("one", json.RawMessage(`{"command":"x"}`), "")
	wantError(t, "Prepare()", err, manage.ErrRefused, "--mcp-config")
	wantError(t, "Remove()", r.Remove("one"), manage.ErrRefused, "--mcp-config")
	wantError(t, "Switch()", r.Switch(t.Context(), "one", false, recorded), manage.ErrRefused, "--mcp-config")
	r.did()
}

func TestWithoutABridge(t *testing.T) {
	r := start(t, one, "", alone)
	p, err := r.Prepare("two", json.RawMessage(`{"command":"cat"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state := r.state("two"); state != "stopped" || !strings.Contains(r.read(), `"two"`) {
		t.Errorf("the server is %q and the file %s, want it stopped, and written down", state, r.read())
	}
	wantError(t, "Restart()", r.Restart(t.Context(), "one"), manage.ErrRefused, `server "one" cannot restart, because yaya is not running`)
}

// Every file is taken over or none, and nothing that was not recorded.
func TestReload(t *testing.T) {
	unchanged := func([]manage.Change) error { return nil }
	for name, c := range map[string]struct {
		entries string
		record  func([]manage.Change) error
		changes string
		did     []string
		err     string
	}{
		"nothing":                 {`"one":{"command":"cat"},"off":{"command":"cat"}`, unchanged, "[]", nil, ""},
		"added":                   {`"one":{"command":"cat"},"off":{"command":"cat"},"new":{"command":"cat"}`, unchanged, "[new added]", []string{"start new"}, ""},
		"changed and removed":     {`"one":{"command":"cat","args":["x"]}`, unchanged, "[off removed one changed]", []string{"stop off", "stop one", "start one"}, ""},
		"switched off":            {`"one":{"command":"cat"},"off":{"command":"cat","disabled":true}`, unchanged, "[off changed switched off]", []string{"stop off", "start off"}, ""},
		"one with a mistake":      {`"one":{"command":"cat","args":["x"]},"off":{"command":"cat","what":1}`, unchanged, "[]", nil, `server "off"`},
		"one that is not audited": {`"new":{"command":"cat"}`, func([]manage.Change) error { return errors.New("the disk is full") }, "[]", nil, "the disk is full"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, `"one":{"command":"cat"},"off":{"command":"cat"}`, "")
			r.write(r.file, `{"mcpServers":{`+c.entries+`}}`)
			changes, err := r.Reload(t.Context(), nil, c.record)
			if (err == nil) != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) {
				t.Errorf("Reload() = %v, want %q", err, c.err)
			}
			if f, ok := errors.AsType[*manage.FileError](err); ok && f.File != r.file {
				t.Errorf("the file with a mistake is %s, want %s", f.File, r.file)
			}
			var got []string
			for _, x := range changes {
				got = append(got, strings.TrimSpace(x.Name+" "+x.Change+" "+x.Note))
			}
			slices.Sort(got)
			if fmt.Sprint(got) != c.changes {
				t.Errorf("Reload() = %v, want %s", got, c.changes)
			}
			r.did(c.did...)
		})
	}
}

// A server of a folder starts when its folder is trusted, with exactly this server, and
// stops when the folder no longer is.
func TestServersOfFolders(t *testing.T) {
	r := start(t, one, `"theirs":{"command":"cat","args":["a"]},"one":{"command":"evil"}`)
	if state := r.state("theirs"); state != "waiting" {
		t.Errorf("the folder's server is %q, want it to wait", state)
	}
	waiting, err := r.Waiting()
	if err != nil || len(waiting) != 1 || waiting[0].Server != "theirs" || !strings.Contains(waiting[0].Runs, "cat a") {
		t.Fatalf("Waiting() = %+v, %v, want the folder's server and what it runs", waiting, err)
	}
	wantError(t, "Approve() of something else", r.Approve(t.Context(), "theirs", "other", "me", nil), manage.ErrStale, "")
	r.did()
	if err := r.Approve(t.Context(), "theirs", waiting[0].Digest, "me", nil); err != nil {
		t.Fatal(err)
	}
	r.does("start theirs")
	trusted, err := r.folders.List()
	if err != nil || len(trusted) != 1 || trusted[0].By != "me" {
		t.Errorf("trusted folders: got %+v, %v, want one, by me", trusted, err)
	}
	wantError(t, "Remove() of a folder's server", r.Remove("theirs"), manage.ErrRefused, "which is not yaya's own")
	if _, err := r.folders.Revoke(r.project, "me"); err != nil {
		t.Fatal(err)
	}
	r.does("stop theirs")
	if state := r.state("theirs"); state != "waiting" {
		t.Errorf("after the trust was revoked the server is %q, want it to wait", state)
	}
}

// Import takes over the servers of another client, except those that yaya already has.
func TestImport(t *testing.T) {
	noOtherPlaces(t)
	r := start(t, one, "")
	r.write(filepath.Join(r.home, ".cursor", "mcp.json"), `{"mcpServers":{"one":{"command":"cat"},"two":{"url":"https://example.com/mcp"}}}`)
	found := r.Importable()
	if len(found) != 1 || len(found[0].Servers) != 2 || !found[0].Servers[0].Known || found[0].Servers[1].Known {
		t.Fatalf("Importable() = %+v, want the client with one server that is known and one that is not", found)
	}
	all, err := r.Import(found[0].Client)
	if err != nil || len(all) != 1 || all[0].Server != "two" {
		t.Fatalf("Import() = %+v, %v, want the server two", all, err)
	}
	if err := all[0].Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.did("start two")
	_, err = r.Import("nobody")
	wantError(t, "Import() of another client", err, manage.ErrUnknown, `"nobody"`)
}

// recorded is an audit that takes everything.
func recorded() error { return nil }

// A switch is recorded before it changes something, and only then.
func TestSwitchIsRecorded(t *testing.T) {
	r := start(t, one, "")
	for _, c := range []struct {
		name    string
		on      bool
		fails   error
		records int
	}{
		{"on, as it is", true, nil, 0},
		{"off, unrecorded", false, errors.New("the audit cannot be written"), 1},
		{"on, as it still is", true, nil, 0},
		{"off", false, nil, 1},
		{"off, as it is", false, nil, 0},
		{"on", true, nil, 1},
	} {
		n := 0
		err := r.Switch(t.Context(), "one", c.on, func() error { n++; return c.fails })
		if !errors.Is(err, c.fails) || n != c.records {
			t.Errorf("%s: Switch() = %v, recorded %d times, want %v and %d", c.name, err, n, c.fails, c.records)
		}
	}
}

// A server that leads back to this yaya would call itself.
func TestItselfIsRefused(t *testing.T) {
	r := start(t, one, "", func(c *manage.Config, _ *rig) { c.Listens = func() []string { return []string{"127.0.0.1:8787"} } })
	_, err := r.Prepare("me", json.RawMessage(`{"url":"http://127.0.0.1:8787/mcp"}`), "")
	wantError(t, "Prepare()", err, manage.ErrRefused, "")
}
