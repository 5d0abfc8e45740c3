package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func TestNewer(t *testing.T) {
	for _, x := range [][2]string{{"1.2.3", "1.2.4"}, {"1.9.0", "1.10.0"}, {"2026.1.1", "2026.10.2"}, {"1.0.0-rc.1", "1.0.0"}, {"v1.0", "1.0.1"}, {"0.9", "1.0.0"}} {
		if !Newer(x[0], x[1]) || Newer(x[1], x[0]) || Newer(x[0], x[0]) {
			t.Errorf("%s and %s: %v, %v", x[0], x[1], Newer(x[0], x[1]), Newer(x[1], x[0]))
		}
	}
}

func TestUpgrade(t *testing.T) {
	e := entryOf(t, strings.ReplaceAll(weather, "1.2.3", "2.0.0"))
	from := func(option string) *servers.Origin {
		return &servers.Origin{Registry: "official", Name: "io.github.sky/weather", Version: "1.2.3", Package: option}
	}
	old := servers.Server{Name: "w", Transport: servers.Stdio, Command: "npx", Args: []string{"-y", "@sky/weather@1.2.3", "--mine"}, Env: map[string]string{"SKY_KEY": "${secret:w.SKY_KEY}"}, Catalog: from("npm")}
	now, notes, err := Upgrade(old, e)
	if err != nil {
		t.Fatal(err)
	}
	if want := "changes @sky/weather@1.2.3 to @sky/weather@2.0.0, and nothing else in the command line"; !slices.Contains(notes, want) {
		t.Errorf("the notes are %q, want one of them to be %q", notes, want)
	}
	if got := now.Endpoint(); got != "npx -y @sky/weather@2.0.0 --mine" || now.Catalog.Version != "2.0.0" || now.Env["SKY_KEY"] != old.Env["SKY_KEY"] || old.Args[1] != "@sky/weather@1.2.3" {
		t.Errorf("it runs %s, from %+v", got, now.Catalog)
	}
	for name, change := range map[string]func(*servers.Server){
		"not from the catalogue": func(x *servers.Server) { x.Catalog = nil },
		"another command":        func(x *servers.Server) { x.Command = "node" },
		"another package":        func(x *servers.Server) { x.Args = []string{"-y", "@sky/weathen@1.2.3"} },
		"named twice":            func(x *servers.Server) { x.Args = append(x.Args, "@sky/weather@1.0.0") },
		"a missing value":        func(x *servers.Server) { x.Env = nil },
		"another address": func(x *servers.Server) {
			*x = servers.Server{Name: "w", Transport: servers.HTTP, URL: "https://other.example.com", Catalog: from("remote")}
		},
		"no such option": func(x *servers.Server) { x.Catalog = from("pypi") },
	} {
		x := old
		x.Args = append([]string{}, old.Args...)
		change(&x)
		if now, _, err := Upgrade(x, e); err == nil {
			t.Errorf("%s: it becomes %s", name, now.Endpoint())
		}
	}
	gone := e
	gone.Status = Deleted
	if now, _, err := Upgrade(old, gone); err == nil {
		t.Errorf("a deleted version: it becomes %s", now.Endpoint())
	}
	remote := servers.Server{Name: "w", Transport: servers.HTTP, URL: "https://sky.example.com/mcp", Catalog: from("remote")}
	if now, _, err := Upgrade(remote, e); err != nil || now.Catalog.Version != "2.0.0" {
		t.Errorf("a remote: %+v, %v", now.Catalog, err)
	}
}

func TestDiffers(t *testing.T) {
	x := servers.Server{Name: "w", Transport: servers.Stdio, Command: "npx", Args: []string{"-y", "@sky/weather@1.2.3"}, Catalog: &servers.Origin{Registry: "official", Name: "io.github.sky/weather", Version: "1.2.3", Package: "npm"}}
	for name, c := range map[string]struct{ entry, want string }{
		"the same":        {weather, ""},
		"newer":           {strings.ReplaceAll(weather, "1.2.3", "1.2.4"), ""},
		"older":           {strings.ReplaceAll(weather, "1.2.3", "1.2.2"), "its registry has the older version 1.2.2 as the newest"},
		"another package": {strings.Replace(weather, `"@sky/weather","version":"1.2.3"`, `"@sky/weather","version":"1.2.0"`, 1), "its registry has @sky/weather@1.2.0 under the same version 1.2.3, and it runs @sky/weather@1.2.3"},
	} {
		if got := Differs(x, entryOf(t, c.entry)); got != c.want {
			t.Errorf("%s: Differs = %q, want %q", name, got, c.want)
		}
	}
	if got := Differs(x, Entry{}); got != "" {
		t.Errorf("of an entry that is not known: Differs = %q, want nothing", got)
	}
}

func TestNewest(t *testing.T) {
	r := newRegistry(t, wire(weather, "active"))
	c, at := newCatalog(t, nil, Registry{"official", r.URL})
	o := Origin{Registry: "official", Name: "io.github.sky/weather", Version: "1.0.0"}
	for _, want := range []int64{1, 1} {
		if e, _, err := c.Newest(t.Context(), o); err != nil || e.Server.Version != "1.2.3" || r.asked.Load() != want {
			t.Errorf("%v, %v after %d requests, want %d", e.Server.Version, err, r.asked.Load(), want)
		}
	}
	at.at.Add(int64(Fresh / time.Second))
	if _, _, err := c.Newest(t.Context(), o); err != nil || r.asked.Load() != 2 {
		t.Errorf("an old answer: %v after %d requests", err, r.asked.Load())
	}
}

func TestParseRegistries(t *testing.T) {
	got, err := ParseRegistries([]string{"official=https://registry.example.com", "team=http://127.0.0.1:1/base"})
	if err != nil || len(got) != 2 || got[1] != (Registry{"team", "http://127.0.0.1:1/base"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"https://x.example", "a=ftp://x", "a=https://u:p@x", "a=https://", "a=https://x?y=1", "bundled=https://x", "A b=https://x", "=https://x", "a=https://x\x1b"} {
		if _, err := ParseRegistries([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if _, err := ParseRegistries([]string{"a=https://x", "a=https://y"}); err == nil {
		t.Error("a name was accepted twice")
	}
	if _, err := ParseRegistries(make([]string, maxRegistries+1)); err == nil {
		t.Error("too many were accepted")
	}
}

func TestWrote(t *testing.T) {
	e := entryOf(t, `{"name":"io.github.sky/weather","description":"Weather","version":"1.0.0","packages":[{"registryType":"npm","identifier":"x","version":"1.0.0","packageArguments":[
{"type":"positional","value":"--api-key=publisher-0123456789"},{"type":"named","name":"--token","value":"publisher-9876543210"},{"type":"named","name":"--password","isRequired":true}]}]}`)
	for name, c := range map[string]struct {
		args []string
		want bool
	}{
		"nothing is hidden":         {[]string{"-y", "x@1.0.0", "a"}, true},
		"words of the entry":        {[]string{"-y", "x@1.0.0", "--api-key=publisher-0123456789", "--token", "publisher-9876543210", "--password", "${secret:w.password}"}, true},
		"the same word in one":      {[]string{"-y", "x@1.0.0", "--token=publisher-9876543210"}, true},
		"a value of the user":       {[]string{"-y", "x@1.0.0", "--api-key=publisher-0123456789", "--password", "of-the-user-41"}, false},
		"a value of an older entry": {[]string{"-y", "x@1.0.0", "--api-key=older-0123456789"}, false},
	} {
		x := servers.Server{Name: "w", Transport: servers.Stdio, Command: "npx", Args: c.args, Catalog: &servers.Origin{Package: "npm"}}
		if got := Wrote(x, e); got != c.want {
			t.Errorf("%s: Wrote(%q) = %v, want %v", name, c.args, got, c.want)
		}
	}
}
