package fetch

import (
	"strings"
	"testing"
)

// Y-103: a source names where a plugin is fetched from; a path is none of them.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Source{
		"npm:weather":                               {NPM, "weather", ""},
		"npm:weather@1.2.0":                         {NPM, "weather", "1.2.0"},
		"npm:@me/weather":                           {NPM, "@me/weather", ""},
		"npm:@me/weather@next":                      {NPM, "@me/weather", "next"},
		"pypi:yaya_weather@1.0.0rc1":                {PyPI, "yaya_weather", "1.0.0rc1"},
		"go:example.com/weather@v1.0.0":             {Go, "example.com/weather", "v1.0.0"},
		"go:example.com/weather/v2":                 {Go, "example.com/weather/v2", ""},
		"git+https://example.com/me/weather@v1":     {Git, "https://example.com/me/weather", "v1"},
		"https://example.com/weather.git@v1.0.0":    {Git, "https://example.com/weather.git", "v1.0.0"},
		"https://example.com/weather.git":           {Git, "https://example.com/weather.git", ""},
		"git+ssh://git@example.com:22/w@main":       {Git, "ssh://git@example.com:22/w", "main"},
		"ssh://git@example.com/w":                   {Git, "ssh://git@example.com/w", ""},
		"git@example.com:me/weather.git@plugins/v1": {Git, "git@example.com:me/weather.git", "plugins/v1"},
		"git@example.com:me/weather.git":            {Git, "git@example.com:me/weather.git", ""},
		"git+file:///srv/weather@v1":                {Git, "file:///srv/weather", "v1"},
	} {
		got, remote, err := Parse(text)
		if err != nil || !remote || got != want {
			t.Errorf("Parse(%q) = %+v, %v, %v; want %+v", text, got, remote, err, want)
			continue
		}
		if again, _, err := Parse(got.String()); err != nil || again != want {
			t.Errorf("Parse(%q) = %+v, %v; want what %q is", got.String(), again, err, text)
		}
	}
	for _, path := range []string{"weather", "./weather", "/srv/weather.tar.gz", "weather.git", "C@D", "a@b/c:d"} {
		if got, remote, err := Parse(path); remote || err != nil {
			t.Errorf("Parse(%q) = %+v, %v, %v; want a path", path, got, remote, err)
		}
	}
}

// Options of a client, other protocols and sources, and addresses with a secret are refused.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"npm:":                                    "not the name",
		"npm:--foo":                               "not the name",
		"npm:weather@":                            "no version",
		"npm:weather@^1.0.0":                      "not a version",
		"npm:weather@https://example.com/x.tgz":   "not a version",
		"npm:weather@git+ssh://example.com/x":     "not a version",
		"npm:weather@npm:other":                   "not a version",
		"npm:../weather":                          "not the name",
		"npm:./weather":                           "not the name",
		"pypi:weather[extra]":                     "not the name",
		"pypi:-r":                                 "not the name",
		"pypi:weather @ https://example.com/x":    "not the name",
		"go:weather":                              "not the name",
		"go:./weather":                            "not the name",
		"go:example.com/../x":                     "not the name",
		"go:-x.com/y":                             "not the name",
		"git+https://example.com/w@--upload":      "not a version",
		"git+https://example.com/w@a..b":          "not a version",
		"git+https://example.com/w@":              "no tag",
		"git+http://example.com/w":                "https, ssh or file",
		"git+ext::sh -c evil":                     "not an address",
		"git+ext://sh/x":                          "https, ssh or file",
		"git+ssh://-oProxyCommand=evil/w":         "name of a host",
		"git+ssh://-l@example.com/w":              "name of a user",
		"git+https://me:token@example.com/w":      "credential helper",
		"git+https://token@example.com/w":         "credential helper",
		"git+https://example.com/w?x=1":           "no ?",
		"git+file://relative/w":                   "whole path",
		"http://example.com/weather.tar.gz":       "git+https",
		"https://example.com/weather":             "git+https",
		"npm:" + strings.Repeat("a", 2000):        "bytes",
		"git+https://exa\nmple.com/w":             "not an address",
		"git+ssh://git@example.com/w@v1\nv2":      "not a version",
		"git+https://example.com/w;touch@v1 && x": "not",
	} {
		got, remote, err := Parse(text)
		if err == nil || !remote || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %+v, %v, %v; want %q", text, got, remote, err, want)
		}
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	for want, tags := range map[string][]string{
		"":        {"main", "v1", "1.0", "v1.0.0-rc.1", "x1.0.0", "v1.0.0.0"},
		"v1.10.0": {"v1.9.0", "v1.10.0", "v1.2.30", "v2.0.0-beta"},
		"2.0.0":   {"v1.0.0", "2.0.0"},
	} {
		if got := Newest(tags); got != want {
			t.Errorf("Newest(%q) = %q, want %q", tags, got, want)
		}
	}
}

// The newest version is looked for where the installed one came from.
func TestUpdate(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("a", 40)
	for _, c := range []struct{ source, version, want string }{
		{"npm:weather@1.0.0", "", "npm:weather"},
		{"npm:weather@1.0.0", "2.0.0", "npm:weather@2.0.0"},
		{"git+https://example.com/w@v1.0.0", "", "git+https://example.com/w"},
		{"git+https://example.com/w@main", "", "git+https://example.com/w@main"},
		{"git+https://example.com/w", "", "git+https://example.com/w"},
		{"git+https://example.com/w@" + commit, "v2", "git+https://example.com/w@v2"},
		{"git+https://example.com/w@" + commit, "", ""},
	} {
		s, _, err := Parse(c.source)
		if err != nil {
			t.Fatal(err)
		}
		got, moves, err := s.Update(c.version)
		if err != nil || moves != (c.want != "") || moves && got.String() != c.want {
			t.Errorf("Update of %s to %q = %s, %v, %v; want %q", c.source, c.version, got, moves, err, c.want)
		}
	}
	s := Source{NPM, "weather", "1.0.0"}
	if _, _, err := s.Update("--foo"); err == nil {
		t.Error("Update() to an option = nil, want an error")
	}
}

// A source that was accepted is read again as itself, and nothing in it is an option of a client.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"npm:@me/weather@1.2.0", "pypi:w@1", "go:example.com/w@v1.0.0", "git+https://example.com/w@v1", "git@example.com:w.git@v1", "git+file:///w", "ssh://git@example.com/w@a/b", "./w"} {
		f.Add(text)
	}
	f.Add("git+file:/") // found by this test
	f.Fuzz(func(t *testing.T, text string) {
		s, remote, err := Parse(text)
		if err != nil || !remote {
			return
		}
		if again, _, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("Parse(%q) = %+v, %v; want %+v, as %q", s.String(), again, err, s, text)
		}
		for _, part := range []string{s.Name, s.Version} {
			if strings.HasPrefix(part, "-") || strings.ContainsAny(part, " \n\x00") {
				t.Errorf("Parse(%q) = %+v, want no option and no white space in it", text, s)
			}
		}
	})
}
