package installed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/plugins/remote"
)

const greedy = toml + "[permissions]\nnetwork = [\"evil.example\"]\n"

// swapping exchanges the plugin.toml of a folder for another one while its files are read: the
// other one is there when the first file is opened, and the old one again once it was read.
func swapping(t *testing.T, folder string) {
	t.Helper()
	at, aside := filepath.Join(folder, "plugin.toml"), filepath.Join(t.TempDir(), "aside")
	was, err := os.ReadFile(at) //nolint:forbidigo // test
	if err != nil {
		t.Fatal(err)
	}
	other := greedy
	if string(was) == greedy {
		other = toml
	}
	place := func(text string) {
		if err := os.WriteFile(aside, []byte(text), 0o700); err != nil { //nolint:gosec,forbidigo // as source does
			t.Fatal(err)
		}
		if err := os.Rename(aside, at); err != nil {
			t.Fatal(err)
		}
	}
	// The size is part of the listing, which was made before: it has to be the same.
	if n := len(was) - len(other); n > 0 {
		other += strings.Repeat("\n", n)
	} else if n < 0 {
		place(string(was) + strings.Repeat("\n", -n))
		was = append(was, strings.Repeat("\n", -n)...)
	}
	opening = func(name string) {
		if name == "plugin.toml" {
			place(other)
		} else {
			place(string(was))
		}
	}
	t.Cleanup(func() { opening = func(string) {} })
}

// R18: the description that is shown is in the digest that is agreed to, whoever renames another
// one meanwhile.
func TestSwappedDescription(t *testing.T) {
	from := source(t, map[string]string{"plugin.toml": toml, "a": "first", "z": "last"})
	// The other description by itself.
	want := inspect(t, source(t, map[string]string{"plugin.toml": greedy, "a": "first", "z": "last"}))
	swapping(t, from)
	shown := inspect(t, from)
	if !slices.Equal(shown.Description.Permissions.Network, []string{"evil.example"}) || shown.Digest != want.Digest {
		t.Errorf("Inspect() = the permissions %q with the digest %s, want those of one description: [\"evil.example\"], %s", shown.Description.Permissions.Network, shown.Digest, want.Digest)
	}
}

// R18: what an installed plugin may do is in the digest that was agreed to, too: when it is
// shown, accepted and loaded.
func TestSwappedInstalledDescription(t *testing.T) {
	s, _ := store(t)
	p := inspect(t, source(t, map[string]string{"plugin.toml": greedy, "a": "first", "z": "last"}))
	e, err := s.Install(p, false, p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	// Now the files have changed to a harmless description, and the agreed one is there while they
	// are read.
	if err := os.WriteFile(filepath.Join(e.Folder(), "plugin.toml"), []byte(toml+strings.Repeat("\n", len(greedy)-len(toml))), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, _, err := e.Describe(); err == nil {
		t.Errorf("Describe() of changed files = %+v, want an error", d)
	}
	swapping(t, e.Folder())
	for name, network := range map[string]func() ([]string, error){
		"Describe": func() ([]string, error) { d, _, err := e.Describe(); return d.Permissions.Network, err },
		"Present": func() ([]string, error) {
			p, err := s.Present("weather")
			return p.Description.Permissions.Network, err
		},
	} {
		if got, err := network(); err != nil || !slices.Equal(got, []string{"evil.example"}) {
			t.Errorf("%s() = the hosts %q, %v, want what the digest has", name, got, err)
		}
	}
}

// A plugin.toml is bounded, and a folder without one is refused.
func TestDescriptionOfFolder(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"it has no file plugin.toml":                     {"a": "x"},
		"at most 256 KiB":                                {"plugin.toml": toml + strings.Repeat("#", remote.MaxDescription)},
		"is in a folder that an installation leaves out": {"plugin.toml": strings.Replace(toml, "./bin", "./lib/__pycache__/bin", 1), "lib/__pycache__/bin": "x"},
	} {
		if _, err := Inspect(source(t, files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Inspect() = %v, want %q", err, want)
		}
	}
}
