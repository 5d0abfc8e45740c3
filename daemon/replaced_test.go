package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// SEC-1: the folder that a link of the configuration folder leads into is protected with the
// file: hidden if it holds nothing else, not changed otherwise, and left alone where programs
// must be able to write.
func TestFoldersOfLinks(t *testing.T) {
	for _, c := range []struct {
		name, target     string
		beside           []string
		hidden, readable []string // below the home folder
	}{
		{"a folder of its own", "dots/yaya/mcp.json", nil, []string{".config/yaya/mcp.json", "dots/yaya"}, nil},
		{"among other files", "dots/mcp.json", []string{"dots/vimrc"}, []string{".config/yaya/mcp.json"}, []string{"dots"}},
		{"the home folder", "mcp.json", nil, []string{".config/yaya/mcp.json"}, nil},
		{"within the configuration folder", ".config/yaya/real.json", nil, []string{".config/yaya/mcp.json"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := sandbox.Real(t.TempDir())
			t.Setenv("TMPDIR", filepath.Join(home, "tmp"))
			in := func(names ...string) (out []string) {
				for _, n := range names {
					out = append(out, filepath.Join(home, n))
				}
				return out
			}
			fill(t, in(append(c.beside, c.target)...)...)
			o := ownFiles{paths: Paths{Home: home, Config: in(".config/yaya")[0]}}
			if err := errors.Join(os.MkdirAll(o.paths.Config, 0o700), os.Symlink(in(c.target)[0], filepath.Join(o.paths.Config, serversName))); err != nil {
				t.Fatal(err)
			}
			hidden, readable := o.Now()
			if !slices.Equal(hidden, in(c.hidden...)) || !slices.Equal(readable, in(c.readable...)) {
				t.Errorf("Now() = %q, %q; want %q, %q", hidden, readable, in(c.hidden...), in(c.readable...))
			}
		})
	}
}

func fill(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// SEC-1: a running yaya does not load files that sandboxes have not protected since its start.
func TestReplacedFilesAreRefused(t *testing.T) {
	replace := func(name string) error {
		return errors.Join(os.WriteFile(name+".new", []byte("{}"), 0o600), os.Rename(name+".new", name))
	}
	relink := func(to, link string) error { return errors.Join(os.Remove(link), os.Symlink(to, link)) }
	for _, c := range []struct {
		name    string
		link    string // where .config/yaya/mcp.json leads, below the home folder
		folder  string // where .config/yaya leads
		named   bool   // --mcp-config PROJECT/mcp.json
		change  func(in func(string) string) error
		refused string // a part of the error
	}{
		{name: "a file in the configuration folder", change: func(in func(string) string) error { return replace(in(".config/yaya/mcp.json")) }},
		{name: "one that is removed", change: func(in func(string) string) error { return os.Remove(in(".config/yaya/mcp.json")) }},
		{name: "the target of a link", link: "dots/mcp.json", change: func(in func(string) string) error { return replace(in("dots/mcp.json")) }},
		{name: "the folder of the target", link: "dots/mcp.json", change: func(in func(string) string) error {
			fill(t, in("other/mcp.json"))
			return errors.Join(os.Rename(in("dots"), in("gone")), os.Rename(in("other"), in("dots")))
		}, refused: "dots was replaced"},
		{name: "a link that becomes a file", link: "dots/mcp.json", change: func(in func(string) string) error { return replace(in(".config/yaya/mcp.json")) }},
		{name: "a file that becomes a link", change: func(in func(string) string) error {
			fill(t, in("dots/mcp.json"))
			return relink(in("dots/mcp.json"), in(".config/yaya/mcp.json"))
		}, refused: "leads there only now"},
		{name: "a link to elsewhere", link: "dots/mcp.json", change: func(in func(string) string) error {
			fill(t, in("other/mcp.json"))
			return relink(in("other/mcp.json"), in(".config/yaya/mcp.json"))
		}, refused: "other was replaced"},
		{name: "a target in the home folder", link: "mcp.json", change: func(in func(string) string) error { return replace(in("mcp.json")) }, refused: "/mcp.json was replaced"},
		{name: "a target in the home folder, as it was", link: "mcp.json", change: func(in func(string) string) error { return os.WriteFile(in("mcp.json"), []byte("{ }"), 0o600) }},
		{name: "the configuration folder", change: func(in func(string) string) error {
			fill(t, in("new/mcp.json"))
			return errors.Join(os.Rename(in(".config/yaya"), in("gone")), os.Rename(in("new"), in(".config/yaya")))
		}, refused: ".config/yaya was replaced"},
		{name: "the link of the configuration folder", folder: "dots/yaya", change: func(in func(string) string) error {
			fill(t, in("other/mcp.json"))
			return relink(in("other"), in(".config/yaya"))
		}, refused: "other was replaced"},
		{name: "behind the link of the configuration folder", folder: "dots/yaya", change: func(in func(string) string) error { return replace(in("dots/yaya/mcp.json")) }},
		{name: "a file that is named", named: true, change: func(in func(string) string) error { return replace(in("project/mcp.json")) }, refused: "project/mcp.json was replaced"},
		{name: "a file that is named, as it was", named: true, change: func(in func(string) string) error {
			return os.WriteFile(in("project/mcp.json"), []byte("{ }"), 0o600)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := sandbox.Real(t.TempDir())
			t.Setenv("TMPDIR", filepath.Join(home, "tmp"))
			in := func(name string) string { return filepath.Join(home, name) }
			o := ownFiles{paths: Paths{Home: home, Config: in(".config/yaya")}}
			file := filepath.Join(o.paths.Config, serversName)
			if c.folder != "" {
				fill(t, filepath.Join(in(c.folder), serversName))
				if err := errors.Join(os.MkdirAll(in(".config"), 0o700), os.Symlink(in(c.folder), o.paths.Config)); err != nil {
					t.Fatal(err)
				}
			} else {
				fill(t, file)
			}
			if c.link != "" {
				fill(t, in(c.link))
				if err := relink(in(c.link), file); err != nil {
					t.Fatal(err)
				}
			}
			if c.named {
				file = in("project/mcp.json")
				fill(t, file)
				o.named = []string{file}
			}
			p := o.protect([]string{file})
			if err := p.check(file); err != nil {
				t.Fatalf("check() before a change = %v, want no error", err)
			}
			if err := c.change(in); err != nil {
				t.Fatal(err)
			}
			err := p.check(file)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("check() = %v, want an error with %q (none for an empty one)", err, c.refused)
			}
		})
	}
}
