package remote

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A description is read strictly: a mistake is an error, not a permission.
func TestParseDescription(t *testing.T) {
	home := filepath.Join(t.TempDir(), "homes", "me")
	link := filepath.Join(filepath.Dir(filepath.Dir(home)), "link")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	const good = "name = \"subject\"\nversion = \"1.0.0\"\ncategory = \"tool\"\nrun = [\"./bin\"]\n"
	for _, c := range []struct{ name, toml, want string }{
		{"good", good, ""},
		{"all", good + "description = \"x\"\nrequires = [\"other\"]\nsubscriptions = [\"plugin.loaded\"]\n[permissions]\nnetwork = [\"*.example.com\"]\nread = [\"~/notes\", \"/srv/x\"]\nwrite = [\"/srv/y\"]\nenv = [\"LANG\"]\nsecrets = [\"api_key\"]\n[config]\ntype = \"object\"\n[config.properties.api_key]\ntype = \"string\"\n", ""},
		{"an unknown member", good + "[permissions]\nnetworks = [\"example.com\"]\n", "permissions.networks is not a member"},
		{"a name", strings.Replace(good, "subject", "Subject", 1), "does not match"},
		{"a version", strings.Replace(good, "1.0.0", "1", 1), "not semver"},
		{"a category", strings.Replace(good, `"tool"`, `"thing"`, 1), "unknown category"},
		{"no id of the category", strings.Replace(good, `"tool"`, `"memory"`, 1), "memory kind"},
		{"no program", strings.Replace(good, `"./bin"`, ``, 1), "not a program"},
		{"an absolute program", strings.Replace(good, "./bin", "/bin/sh", 1), "neither a file of the folder"},
		{"a program outside", strings.Replace(good, "./bin", "../bin", 1), "neither a file of the folder"},
		{"an unknown event", good + "subscriptions = [\"no.such\"]\n", "there is no event"},
		{"localhost without a port", good + "[permissions]\nnetwork = [\"LocalHost.\"]\n", "permissions.network: host \"LocalHost.\": a service of this machine needs its port; write localhost:8080"},
		{"a loopback address without a port", good + "[permissions]\nnetwork = [\"::1\"]\n", "needs its port; write [::1]:8080"},
		{"localhost with a port", good + "[permissions]\nnetwork = [\"localhost:8080\", \"127.0.0.1:99\", \"[::1]:99\"]\n", ""},
		{"a host", good + "[permissions]\nnetwork = [\"http://x/\"]\n", "permissions.network"},
		{"the root folder", good + "[permissions]\nread = [\"/srv\", \"/\"]\n", "permissions.read: \"/\": / is the whole file system: name the files and folders that are needed$"},
		{"the root folder to write", good + "[permissions]\nwrite = [\"/..\"]\n", "permissions.write: \"/..\": /.. is the whole file system: name"},
		{"the home folder", good + "[permissions]\nread = [\"~/\"]\n", "whole home folder"},
		{"the home folder, with a dot", good + "[permissions]\nread = [\"~/.\"]\n", "whole home folder"},
		{"the home folder, around a corner", good + "[permissions]\nwrite = [\"~/a/..\"]\n", "whole home folder"},
		{"the home folder by its path", good + "[permissions]\nread = [\"" + home + "/\"]\n", "whole home folder"},
		{"the folder of home folders", good + "[permissions]\nread = [\"" + filepath.Dir(home) + "\"]\n", "whole home folder"},
		{"a link to the home folder", good + "[permissions]\nread = [\"" + link + "\"]\n", "whole home folder"},
		{"a folder in the home folder by its path", good + "[permissions]\nread = [\"" + home + "/notes\"]\n", ""},
		{"an entry of the longest size", good + "[permissions]\nread = [\"/" + strings.Repeat("x", maxEntry-1) + "\"]\n", ""},
		{"an entry that is longer", good + "[permissions]\nread = [\"/" + strings.Repeat("x", maxEntry) + "\"]\n", "permissions.read: \"/xxx"},
		{"an entry of two lines", good + "[permissions]\nread = [\"/srv\\n/x\"]\n", "permissions.read: \"/srv\\n/x\" is not a line"},
		{"as many entries as there can be", good + "[permissions]\nenv = [" + strings.Repeat("\"A\",", maxListed) + "]\n", ""},
		{"too many entries", good + "[permissions]\nenv = [" + strings.Repeat("\"A\",", maxListed+1) + "]\n", "permissions.env: more than 64"},
		{"too many guards", good + "[permissions]\nguards = [" + strings.Repeat("\"pre_tool\",", maxListed+1) + "]\n", "guard"},
		{"the longest program", strings.Replace(good, `"./bin"`, `"./bin", "`+strings.Repeat("x", maxRun-6)+`"`, 1), ""},
		{"a program that is longer", strings.Replace(good, `"./bin"`, `"./bin", "`+strings.Repeat("x", maxRun-5)+`"`, 1), "run: 1501 bytes"},
		{"a folder above the home folder", good + "[permissions]\nread = [\"~/../x\"]\n", "permissions.read: \"~/../x\": it leads out of the home folder"},
		{"a relative path", good + "[permissions]\nwrite = [\"x\"]\n", "permissions.write: \"x\": a path begins with / or ~/, such as"},
		{"devices", good + "[permissions]\nread = [\"/dev\"]\n", "permissions.read: \"/dev\": /dev cannot be given to a sandbox, which has /dev of its own: leave it out$"},
		{"a variable that loads code", good + "[permissions]\nenv = [\"LD_PRELOAD\"]\n", "does not get"},
		{"a variable of yaya's", good + "[permissions]\nenv = [\"YAYA_PASSPHRASE_FILE\"]\n", "does not get"},
		{"approvals of a tool", good + "[permissions]\napprovals = true\n", "only an adapter"},
		{"a schema that points outside", good + "[config]\n\"$ref\" = \"http://example.com/x\"\n", "points outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseDescription([]byte(c.toml))
			want, end := strings.CutSuffix(c.want, "$") // nothing follows it
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || end && !strings.HasSuffix(err.Error(), want)) {
				t.Errorf("ParseDescription() = %v, want %q", err, c.want)
			}
		})
	}
}

// R8: a setting that holds a secret reaches a plugin only with the permission.
func TestSecretSettings(t *testing.T) {
	for _, c := range []struct {
		permission, want string
	}{
		{`secrets = ["api_key"]`, `{"api_key":"k","units":"metric"}`},
		{`secrets = []`, `{"units":"metric"}`},
	} {
		t.Run(c.permission, func(t *testing.T) {
			w := newWorld(t)
			for key, v := range map[string]string{"plugin.subject.api_key": `"k"`, "plugin.subject.units": `"metric"`, "plugin.subject.other": `"x"`} {
				if err := w.cfg.Set(key, json.RawMessage(v)); err != nil {
					t.Fatal(err)
				}
			}
			p := w.load("tool", "tool", "[permissions]", c.permission, "[config]", `type = "object"`, "[config.properties.api_key]", `type = "string"`, "[config.properties.units]", `type = "string"`)
			got, err := json.Marshal(p.settings(p.c).Config)
			if err != nil || string(got) != c.want {
				t.Errorf("the plugin gets %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

// A permission that an update adds, of whatever kind, is one more, and nothing but a permission.
func TestEveryPermissionCounts(t *testing.T) {
	for f := range reflect.TypeFor[Permissions]().Fields() {
		var p Permissions
		v := reflect.ValueOf(&p).Elem().FieldByIndex(f.Index)
		if v.Kind() == reflect.Bool {
			v.SetBool(true)
		} else {
			v.Set(reflect.ValueOf([]string{"x"}))
		}
		if p.None() || p.Beyond(Permissions{}).None() || !p.Beyond(p).None() || len(p.Lines()) != 1 {
			t.Errorf("%s: none %v, added %v, without a change %v, %d lines; want a permission of one line that counts when it is added", f.Name, p.None(), p.Beyond(Permissions{}), p.Beyond(p), len(p.Lines()))
		}
	}
}

// No entry of a permission hides behind another one.
func TestLinesOfEntries(t *testing.T) {
	got := Permissions{Network: []string{"a.example", "b.example"}, Read: []string{"/a", "~/.ssh"}, Write: []string{"/c"}, Env: []string{"A", "B"}, Secrets: []string{"key", "token"}}.Lines()
	want := []string{
		"reaches the host a.example", "reaches the host b.example", "reads /a", "reads ~/.ssh", "reads and writes /c",
		"gets the variable A", "gets the variable B", "gets the secret in its setting key", "gets the secret in its setting token",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Lines() =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
