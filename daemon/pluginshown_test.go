package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/plugins/installed"
)

// installing is a core with the plugins of agents, where plugins can be installed; before is called
// before any is loaded.
func installing(t *testing.T, before func(*core)) *core {
	t.Helper()
	g, ctx := newFlags(t), t.Context()
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	at, err := openPlace(g, p, access{lock: true, log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	st, err := openStores(ctx, at, holdings{outside: g.OwnFiles(p, nil)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCore(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.plugins.endWatch()
		if err := errors.Join(c.Close(ctx), st.Close(ctx), at.Close(ctx)); err != nil {
			t.Errorf("the end = %v, want no error", err)
		}
	})
	st.awaitSecrets()
	before(c)
	c.kernel.OnBundled(c.plugins.load)
	if err := c.kernel.Start(ctx, c.agents()...); err != nil {
		t.Fatal(err)
	}
	return c
}

// pluginFolder makes the folder of a plugin that does not start, whose plugin.toml ends in more.
func pluginFolder(t *testing.T, name, version, category, more string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	describe(t, dir, name, version, category, more)
	return dir
}

func describe(t *testing.T, dir, name, version, category, more string) {
	t.Helper()
	write(t, filepath.Join(dir, "plugin.toml"), fmt.Sprintf("name = %q\nversion = %q\ncategory = %q\nrun = [\"false\"]\n%s\n", name, version, category, more))
}

// keepPlugin puts a plugin among the installed ones, without a question and without starting it.
func keepPlugin(t *testing.T, c *core, folder string, editable bool) installed.Entry {
	t.Helper()
	p, err := installed.Inspect(folder)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.plugins.store.Install(p, editable, p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Only one plugin has an id: another one would get what is meant for it, such as the messages of
// all sessions with the strategy react. That holds when it is shown, installed, and loaded.
func TestPluginIDs(t *testing.T) {
	changed := filepath.Join(t.TempDir(), "changed")
	c := installing(t, func(c *core) {
		keepPlugin(t, c, pluginFolder(t, "first", "1.0.0", "strategy", `strategy_id = "mine"`), false)
		describe(t, changed, "changed", "1.0.0", "strategy", `strategy_id = "other"`)
		keepPlugin(t, c, changed, true)
		describe(t, changed, "changed", "1.0.1", "strategy", `strategy_id = "react"`)
		again := pluginFolder(t, "second", "1.0.0", "strategy", `strategy_id = "twice"`)
		keepPlugin(t, c, again, false)
		third := pluginFolder(t, "third", "1.0.0", "strategy", `strategy_id = "twice"`)
		keepPlugin(t, c, third, false)
	})
	for name, want := range map[string]string{"changed": `strategy_id "react"`, "third": `strategy_id "twice"`} {
		got := ""
		for _, s := range c.kernel.Plugins.Snapshot() {
			if s.Name == name {
				got = s.Error
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("plugin %s failed with %q, want %q", name, got, want)
		}
	}
	for _, at := range []struct{ name, category, more, want string }{
		{"thief", "strategy", `strategy_id = "react"`, `the plugin strategy-react has the strategy_id "react" already`},
		{"thief", "strategy", `strategy_id = "mine"`, `the plugin first has the strategy_id "mine" already`},
		{"thief", "strategy", `strategy_id = "twice"`, "already"},
		{"strategy-react", "strategy", `strategy_id = "free"`, "is a part of yaya"},
		{"thief", "strategy", `strategy_id = "free"`, ""},
		{"first", "strategy", `strategy_id = "mine"`, ""},
		{"thief", "memory", `memory_kind = "long-term"`, ""},
	} {
		from := pluginFolder(t, at.name, "1.0.0", at.category, at.more)
		p, err := installed.Inspect(from)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := c.plugins.Propose(t.Context(), from, false)
		if at.want == "" {
			if err != nil || !strings.Contains(at.more, "\""+shown.StrategyID+shown.MemoryKind+"\"") {
				t.Errorf("%s with %s: Propose() = %+v, %v, want its id and no error", at.name, at.more, shown, err)
			}
			continue
		}
		for what, err := range map[string]error{"Propose": err, "Install": c.plugins.Install(t.Context(), from, false, p.Digest)} {
			if !errors.Is(err, admin.ErrRefused) || !strings.Contains(err.Error(), at.want) {
				t.Errorf("%s with %s: %s() = %v, want %q", at.name, at.more, what, err, at.want)
			}
		}
	}
}

// Files that nobody has agreed to are not what an update is compared with, and not the same.
func TestUpdateOfChangedFiles(t *testing.T) {
	var e installed.Entry
	from := pluginFolder(t, "weather", "1.0.0", "tool", "[permissions]\nnetwork = [\"a.example\"]\n")
	c := installing(t, func(c *core) { e = keepPlugin(t, c, from, false) })
	shown, err := c.plugins.Propose(t.Context(), from, false)
	if err != nil || !shown.Same || shown.Installed != "1.0.0" || len(shown.Changes) != 0 {
		t.Errorf("Propose() = %+v, %v, want the same without changes", shown, err)
	}
	write(t, filepath.Join(e.Folder(), "more"), "x")
	shown, err = c.plugins.Propose(t.Context(), from, false)
	want := []string{"the files of the installed one have changed and cannot be compared", "NEW PERMISSION: reaches the host a.example"}
	if err != nil || shown.Same || shown.Installed != "1.0.0" || !slices.Equal(shown.Changes, want) {
		t.Errorf("Propose() = %+v, %v, want not the same, and the changes %q", shown, err, want)
	}
}

// A version that does not start leaves word of how to go back to the earlier one.
func TestWayBack(t *testing.T) {
	c := installing(t, func(*core) {})
	from := pluginFolder(t, "weather", "1.0.0", "tool", "")
	install := func() string {
		t.Helper()
		shown, err := c.plugins.Propose(t.Context(), from, false)
		if err != nil {
			t.Fatal(err)
		}
		err = c.plugins.Install(t.Context(), from, false, shown.Digest)
		if err == nil || !strings.Contains(err.Error(), "does not start") {
			t.Fatalf("Install() = %v, want that it does not start", err)
		}
		return err.Error()
	}
	if got, want := install(), "weather 1.0.0 is installed, and does not start: before it answered initialize, its process exited with status 1; correct it and install it again, or remove it: yaya plugin remove weather"; got != want {
		t.Errorf("the first installation says %q, want %q", got, want)
	}
	if got := install(); strings.Contains(got, "go back") {
		t.Errorf("the same files say %q, want no way back to them", got)
	}
	describe(t, from, "weather", "1.1.0", "tool", "")
	if got, want := install(), "to go back to version 1.0.0, put its files there again, then: yaya plugin install "+from; !strings.HasSuffix(got, want) || strings.Count(got, from) != 1 {
		t.Errorf("the update says %q, want %q, which names the folder once", got, want)
	}
	for want, was := range map[string]installed.Entry{
		"to go back to version 1.0.0: yaya plugin install npm:weather@1.0.0":                      {Version: "1.0.0", Source: "npm:weather@1.0.0"},
		"yaya plugin install --editable /weather":                                                 {Version: "1.0.0", Source: "/weather", Editable: true},
		"to go back to version 1.0.0, if its files are still there: yaya plugin install /weather": {Version: "1.0.0", Source: "/weather"},
	} {
		if got := wayBack(was, installed.Entry{Source: from}); !strings.Contains(got, want) {
			t.Errorf("wayBack() = %q, want %q", got, want)
		}
	}
}

// A source that cannot be installed is refused before the question.
func TestRefusedSources(t *testing.T) {
	c := installing(t, func(*core) {})
	archive := filepath.Join(t.TempDir(), "weather.tar.gz")
	tarFile(t, archive, "plugin.toml", "name = \"weather\"\nversion = \"1.0.0\"\ncategory = \"tool\"\nrun = [\"false\"]\n")
	broken := filepath.Join(t.TempDir(), "broken.tar.gz")
	tarFile(t, broken, "broken/plugin.toml", "x = [[\n")
	for _, at := range []struct {
		source   string
		editable bool
		want     string
	}{
		{broken, false, ": " + broken + ": plugin.toml: toml: "},
		{"npm:weather@1.0.0", true, "can be editable"},
		{archive, true, "can be editable"},
		{archive, false, ""},
		{"weather", false, "is not an absolute path"},
		{"~/weather", false, "is not an absolute path"},
		{"ftp://weather", false, "Git repository"},
	} {
		_, err := c.plugins.Propose(t.Context(), at.source, at.editable)
		if at.want == "" {
			if err != nil {
				t.Errorf("%s: Propose() = %v, want no error", at.source, err)
			}
		} else if !errors.Is(err, admin.ErrRefused) || !strings.Contains(err.Error(), at.want) {
			t.Errorf("%s: Propose() = %v, want %q", at.source, err, at.want)
		}
	}
}

// A question names the sandbox of a build only if there is one.
func TestBuildsWhere(t *testing.T) {
	c := installing(t, func(*core) {})
	from := pluginFolder(t, "weather", "1.0.0", "tool", "")
	write(t, filepath.Join(from, "plugin.toml"), "name = \"weather\"\nversion = \"1.0.0\"\ncategory = \"tool\"\nrun = [\"./weather\"]\n")
	write(t, filepath.Join(from, "go.mod"), "module weather\n")
	ask := func(set sandbox.Settings) string {
		t.Helper()
		c.st.sandboxes.Settings = func() sandbox.Settings { return set }
		shown, err := c.plugins.Propose(t.Context(), from, false)
		if err != nil {
			t.Fatal(err)
		}
		return shown.Builds
	}
	if got := ask(sandbox.Settings{Mode: sandbox.Without, Backend: "auto"}); !strings.Contains(got, "WITHOUT a sandbox") {
		t.Errorf("with the mode off, builds %q, want the lack of a sandbox", got)
	}
	got := ask(sandbox.Settings{Mode: sandbox.Prefer, Backend: "auto"})
	here, err := c.st.sandboxes.Here(sandbox.Policy{Profile: "server", Net: sandbox.Net{Mode: sandbox.Off}})
	switch {
	case err != nil || here.Backend == sandbox.None:
		t.Skipf("no sandbox works here: %v", err)
	case !strings.Contains(got, "in a sandbox without a network") && !strings.Contains(got, "would be refused"):
		t.Errorf("with the mode prefer, builds %q, want the sandbox", got)
	}
	if _, err := os.Stat(filepath.Join(from, "weather")); err == nil {
		t.Error("the program was built before the answer")
	}
}
