package installed

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const toml = `name = "weather"
version = "1.0.0"
category = "tool"
run = ["./bin"]
`

// source makes the folder of a plugin.
func source(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o700)); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return dir
}

func store(t *testing.T) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	data, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = data.Close() })
	return NewStore(data), dir
}

func inspect(t *testing.T, at string) *Package {
	t.Helper()
	p, err := Inspect(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v, want no error", err)
		}
	})
	return p
}

// Y-103: the files of a folder are copied, without its history and caches, and stay as they
// are when the source changes.
func TestInstall(t *testing.T) {
	s, data := store(t)
	from := source(t, map[string]string{"plugin.toml": toml, "bin": "one", ".git/config": "x", "lib/__pycache__/a.pyc": "x", "lib/a.py": "x"})
	p := inspect(t, from)
	e, err := s.Install(p, false, p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(data, "plugins", "weather", "1.0.0"); e.Folder() != want {
		t.Errorf("Folder() = %s, want %s", e.Folder(), want)
	}
	for name, want := range map[string]bool{"bin": true, "lib/a.py": true, ".git": false, "lib/__pycache__": false} {
		if _, err := os.Stat(filepath.Join(e.Folder(), name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "bin"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := s.List()
	if err != nil || len(got) != 1 || got[0].Verify() != nil {
		t.Fatalf("List() = %+v, %v, want the plugin as it was installed", got, err)
	}
	// An update takes the place of the old version.
	if err := os.WriteFile(filepath.Join(from, "plugin.toml"), []byte(strings.Replace(toml, "1.0.0", "1.1.0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p = inspect(t, from)
	if e, err = s.Install(p, false, p.Digest); err != nil || e.Version != "1.1.0" {
		t.Fatalf("Install() = %+v, %v, want version 1.1.0", e, err)
	}
	if _, err := os.Stat(filepath.Join(data, "plugins", "weather", "1.0.0")); err == nil {
		t.Error("the files of the old version are still there")
	}
	at := filepath.Join(data, "plugins", "weather")
	state := filepath.Join(at, "state", "kept")
	if err := errors.Join(os.MkdirAll(filepath.Dir(state), 0o700), os.WriteFile(state, nil, 0o600), os.WriteFile(filepath.Join(at, "load-error.txt"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("weather", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(state); err != nil {
		t.Errorf("the state of a removed plugin: %v, want it there", err)
	}
	if left, err := os.ReadDir(at); err != nil || len(left) != 1 {
		t.Errorf("a removed plugin leaves %v, %v, want its state alone", left, err)
	}
	if _, err := s.Get("weather"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get() of a removed plugin = %v, want none", err)
	}
}

// R18: what was shown is what is installed, and what runs.
func TestDigest(t *testing.T) {
	s, _ := store(t)
	from := source(t, map[string]string{"plugin.toml": toml, "bin": "one"})
	p := inspect(t, from)
	if err := os.WriteFile(filepath.Join(from, "bin"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(p, false, p.Digest); err == nil || !strings.Contains(err.Error(), "change while they are copied") {
		t.Errorf("Install() of files that have changed = %v, want a refusal", err)
	}
	p = inspect(t, from)
	if _, err := s.Install(p, false, "sha256:00"); err == nil || !strings.Contains(err.Error(), "agreed to") {
		t.Errorf("Install() with another digest = %v, want a refusal", err)
	}
	e, err := s.Install(p, false, p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"content": func() error { return os.WriteFile(filepath.Join(e.Folder(), "bin"), []byte("three"), 0o600) },
		"a file":  func() error { return os.WriteFile(filepath.Join(e.Folder(), "sitecustomize.py"), nil, 0o600) },
		"a cache": func() error {
			return errors.Join(os.Mkdir(filepath.Join(e.Folder(), "__pycache__"), 0o700), os.WriteFile(filepath.Join(e.Folder(), "__pycache__", "a.pyc"), nil, 0o600))
		},
		"a mode": func() error { return os.Chmod(filepath.Join(e.Folder(), "bin"), 0o600) },
		"a link": func() error { return os.Symlink("/etc/passwd", filepath.Join(e.Folder(), "link")) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if err := e.Verify(); err == nil {
				t.Errorf("Verify() = nil, want an error")
			}
		})
	}
	if err := os.Remove(filepath.Join(e.Folder(), "link")); err != nil {
		t.Fatal(err)
	}
	changed := e.Verify()
	if changed == nil || !strings.Contains(changed.Error(), "yaya plugin accept weather") {
		t.Errorf("Verify() = %v, want the command that accepts the files", changed)
	}
	now, err := s.Present("weather")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept("weather", e.Digest); err == nil {
		t.Error("Accept() with the old digest = nil, want a refusal")
	}
	if e, err = s.Accept("weather", now.Digest); err != nil || e.Verify() != nil {
		t.Errorf("Accept() = %v and Verify() = %v, want no errors", err, e.Verify())
	}
}

// A removed plugin that has kept nothing leaves nothing.
func TestRemoveWithoutState(t *testing.T) {
	s, data := store(t)
	for _, editable := range []bool{false, true} {
		p := inspect(t, source(t, map[string]string{"plugin.toml": toml, "bin": "one"}))
		at := filepath.Join(data, "plugins", "weather")
		if _, err := s.Install(p, editable, p.Digest); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(filepath.Join(at, "state"), 0o700), os.WriteFile(filepath.Join(at, "load-error.txt"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := s.Remove("weather", false); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("editable %v: the folder of a removed plugin: %v, want none", editable, err)
		}
	}
}

// A person who is asked about changed files sees which, of those that were installed or accepted
// last, and not more than can be read.
func TestPresentChanges(t *testing.T) {
	s, data := store(t)
	p := inspect(t, source(t, map[string]string{"plugin.toml": toml, "bin": "one", "gone": "x", "lib/a.py": "x", "mode": "x"}))
	e, err := s.Install(p, false, p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	says := func(want ...string) *Package {
		t.Helper()
		now, err := s.Present("weather")
		if err != nil || !slices.Equal(now.Changes, want) {
			t.Errorf("Present() = %q, %v, want %q", now.Changes, err, want)
		}
		return now
	}
	write := func(name, text string, mode fs.FileMode) {
		t.Helper()
		at := filepath.Join(e.Folder(), name)
		if err := errors.Join(os.WriteFile(at, []byte(text), mode), os.Chmod(at, mode)); err != nil {
			t.Fatal(err)
		}
	}
	says("none: its files are those that were installed")
	write("bin", "two", 0o700)
	write("mode", "x", 0o600)
	write("lib/b.py", "x", 0o600)
	if err := os.Remove(filepath.Join(e.Folder(), "gone")); err != nil {
		t.Fatal(err)
	}
	now := says("changed: bin", "changed: mode", "added: lib/b.py", "removed: gone")
	if _, err := s.Accept("weather", now.Digest); err != nil {
		t.Fatal(err)
	}
	says("none: its files are those that were installed")
	for i := range maxShown + 2 {
		write(fmt.Sprintf("many%03d", i), "x", 0o600)
	}
	if now, err := s.Present("weather"); err != nil || len(now.Changes) != maxShown+1 || now.Changes[maxShown] != "added: 2 more files" {
		t.Errorf("Present() = %q, %v, want %d files and how many more", now.Changes, err, maxShown)
	}
	record := filepath.Join(data, "plugins", "weather", filesFile)
	raw, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	const unknown = "some of its files: which ones was not recorded when it was installed"
	if err := os.WriteFile(record, bytes.Replace(raw, []byte("sha256:"), []byte("sha256:0"), 1), 0o600); err != nil { // of other files
		t.Fatal(err)
	}
	says(unknown)
	if err := os.Remove(record); err != nil { // installed by an earlier yaya
		t.Fatal(err)
	}
	says(unknown)
}

// TW-23: a folder that somebody has put among the plugins has no effect.
func TestPlanted(t *testing.T) {
	s, data := store(t)
	at := filepath.Join(data, "plugins", "weather")
	if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "plugin.toml"), []byte(toml), 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err := s.List()
	if len(got) != 0 || err == nil || !strings.Contains(err.Error(), "yaya plugin install") {
		t.Errorf("List() = %+v, %v, want no plugin and how to install it", got, err)
	}
}

// Archives hold files and folders, and nothing that leads outside.
func TestArchive(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []tar.Header
		want  string
	}{
		{"at the top", []tar.Header{{Name: "plugin.toml", Typeflag: tar.TypeReg}, {Name: "bin", Typeflag: tar.TypeReg, Mode: 0o755}}, ""},
		{"in one folder", []tar.Header{{Name: "weather-1.0.0/plugin.toml", Typeflag: tar.TypeReg}, {Name: "weather-1.0.0/bin", Typeflag: tar.TypeReg, Mode: 0o755}}, ""},
		{"outside", []tar.Header{{Name: "../x", Typeflag: tar.TypeReg}}, "leads outside"},
		{"absolute", []tar.Header{{Name: "/tmp/x", Typeflag: tar.TypeReg}}, "leads outside"},
		{"a link", []tar.Header{{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}, "no links"},
		{"a hard link", []tar.Header{{Name: "x", Typeflag: tar.TypeLink, Linkname: "y"}}, "no links"},
		{"a device", []tar.Header{{Name: "x", Typeflag: tar.TypeChar}}, "no links"},
		{"twice", []tar.Header{{Name: "plugin.toml", Typeflag: tar.TypeReg}, {Name: "plugin.toml", Typeflag: tar.TypeReg}}, "exists"},
		{"nothing", nil, "plugin.toml"},
		{"a broken package", []tar.Header{{Name: "p/.claude-plugin/plugin.json", Typeflag: tar.TypeReg}}, ".claude-plugin/plugin.json: it is not a JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var buf bytes.Buffer
			zipped := gzip.NewWriter(&buf)
			w := tar.NewWriter(zipped)
			for _, h := range c.files {
				if h.Typeflag == tar.TypeReg {
					h.Size = int64(len(toml))
				}
				err := w.WriteHeader(&h)
				if err == nil && h.Size > 0 {
					_, err = w.Write([]byte(toml))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			at := filepath.Join(t.TempDir(), "weather.tar.gz")
			if err := errors.Join(w.Close(), zipped.Close(), os.WriteFile(at, buf.Bytes(), 0o600)); err != nil {
				t.Fatal(err)
			}
			p, err := Inspect(at)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), at) || strings.Contains(err.Error(), "yaya-plugin-") {
					t.Errorf("Inspect() = %v, want %q with the archive, and no temporary folder", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s, _ := store(t)
			e, err := s.Install(p, false, p.Digest)
			if err != nil || e.Verify() != nil {
				t.Errorf("Install() = %v, Verify() = %v, want no errors", err, e.Verify())
			}
			if _, err := s.Install(p, true, p.Digest); err == nil {
				t.Error("Install() of an editable archive = nil, want a refusal")
			}
			if err := p.Close(); err != nil {
				t.Errorf("Close() = %v, want no error", err)
			}
			if _, err := os.Stat(p.Folder); err == nil {
				t.Errorf("%s is still there", p.Folder)
			}
		})
	}
}

// A watch reports files that have changed, once they rest.
func TestWatch(t *testing.T) {
	from := source(t, map[string]string{"plugin.toml": toml, "bin": "one"})
	w := NewWatch(from)
	if w.Changed() {
		t.Error("Changed() = true without a change")
	}
	// A link, such as npm makes them, hides no change, although an installed plugin may have none.
	if err := os.Symlink("bin", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if w.Changed() || !w.Changed() {
		t.Error("Changed() does not report a link once it rests")
	}
	for name, text := range map[string]string{"bin": "longer", "new.py": "x"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := []bool{w.Changed(), w.Changed(), w.Changed()}; got[0] || !got[1] || got[2] {
			t.Errorf("%s: Changed() = %v, want it once, at the second call", name, got)
		}
	}
}
