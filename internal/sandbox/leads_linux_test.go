package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where only Landlock keeps a program, it can put links in the place of the caches. yaya
// removes and provides only its own files there.
func TestSweepFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(in("data/keys"), 0o700), os.WriteFile(in("data/keys/k"), []byte("key"), 0o600), os.Symlink(in("data"), in("linked")),
		os.MkdirAll(in("top/keys"), 0o700), os.WriteFile(in("top/keys/k"), []byte("key"), 0o600), os.Symlink(in("data"), in("top/of-x")),
		os.MkdirAll(in("locked"), 0o700), os.Symlink(in("made"), in("locked/lock"))); err != nil {
		t.Fatal(err)
	}
	for top, refused := range map[string]bool{"linked": true, "top": false, "locked": true} {
		if err := NewScratch(in(top)).Sweep(); (err != nil) != refused {
			t.Errorf("Sweep of %s = %v, want an error: %v", top, err, refused)
		}
	}
	for _, name := range []string{"data/keys/k", "top/keys/k"} {
		if _, err := os.Stat(in(name)); err != nil {
			t.Errorf("what is not a Scratch's is gone: %v", err)
		}
	}
	if _, err := os.Lstat(in("made")); err == nil {
		t.Error("a file was made where a link leads")
	}
}

func TestCacheThatLeadsToYaya(t *testing.T) {
	for _, backend := range []string{Namespaces, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			b.Own = []string{p.own}
			if err := errors.Join(os.Mkdir(p.own+"/tmp", 0o700), os.Symlink(p.own, p.dir+"/caches")); err != nil {
				t.Fatal(err)
			}
			for name, set := range map[string]func(*Policy){
				"cache":            func(pol *Policy) { pol.Cache = p.dir + "/caches/tmp" },
				"temporary folder": func(pol *Policy) { pol.Tmp = p.dir + "/caches/tmp" },
			} {
				pol := profile(t, "command")
				pol.Home, pol.Write = p.home, open(t, p.ws)
				set(&pol)
				if got, err := b.start(t, pol, p.ws, nil, "true"); err == nil || !strings.Contains(err.Error(), "leads to "+p.own) {
					t.Errorf("%s: got %+v, %v; want a refusal that names where it leads", name, got, err)
				}
			}
		})
	}
}
