package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// SEC-1: a configuration file may be a link into a folder of the user's, where a program
// outside, such as Git, replaces it while a server of the user's own runs. That server
// cannot write the new file, nor put another one there; in a folder that holds nothing
// else, it cannot read it either.
func TestReplacedFromOutside(t *testing.T) {
	const script = `cd "$HOME"; touch ready
n=0; while [ ! -e go ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n+1)); done
echo planted > dots/mcp.json && echo wrote
echo planted > dots/own && mv dots/own dots/mcp.json && echo replaced
mv dots gone && mkdir dots && echo planted > dots/mcp.json && echo moved
cat dots/mcp.json; echo free > free/file && echo end`
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, hidden := range []bool{false, true} {
			name := backend + ", read-only folder"
			if hidden {
				name = backend + ", hidden folder"
			}
			t.Run(name, func(t *testing.T) {
				b := needs(t, backend)
				home := besidetmp.Dir(t)
				in := func(name string) string { return filepath.Join(home, name) }
				if err := errors.Join(os.Mkdir(in("dots"), 0o755), os.Mkdir(in("free"), 0o755), os.WriteFile(in("dots/mcp.json"), []byte("old secret"), 0o600)); err != nil {
					t.Fatal(err)
				}
				b.Own = []string{in("dots/mcp.json")}
				if hidden {
					b.Own = append(b.Own, in("dots"))
				} else {
					b.Readable = []string{in("dots")}
				}
				if backend == Landlock { // it makes no new names beside what it hides, in a folder above
					if err := os.WriteFile(in("ready"), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				p := profile(t, "guarded")
				p.Home = home
				replaced := make(chan error, 1)
				go func() { replaced <- replaceOnce(in("ready"), in("dots/mcp.json"), in("go")) }()
				got, err := b.start(t, p, home, nil, "sh", "-c", script)
				if err = errors.Join(err, <-replaced); err != nil {
					t.Fatal(err)
				}
				for _, bad := range []string{"wrote", "replaced", "moved", "planted"} {
					if strings.Contains(got.out, bad) {
						t.Errorf("the program printed %q, want nothing like %q", got.out, bad)
					}
				}
				if hidden && strings.Contains(got.out, "secret") {
					t.Errorf("the program read %q, want nothing of a file in a hidden folder", got.out)
				}
				if !strings.Contains(got.out, "end") {
					t.Errorf("the program printed %q, want it to write elsewhere", got.out)
				}
				if data, err := os.ReadFile(in("dots/mcp.json")); err != nil || string(data) != "new secret" {
					t.Errorf("the file holds %q, %v; want %q", data, err, "new secret")
				}
			})
		}
	}
}

// replaceOnce replaces a file once the program has made another one, and tells the program.
func replaceOnce(ready, name, done string) error {
	ok := false
	for begun := time.Now(); !ok && time.Since(begun) < eventually.Limit; time.Sleep(5 * time.Millisecond) {
		_, err := os.Stat(ready)
		ok = err == nil
	}
	if !ok {
		return errors.New("the program did not begin")
	}
	return errors.Join(os.WriteFile(name+".new", []byte("new secret"), 0o600), os.Rename(name+".new", name), os.WriteFile(done, nil, 0o600))
}

// SEC-1: bubblewrap cannot keep a link from being replaced: where yaya's own folder is behind
// one, nothing that could replace it starts, not even a server of the user's own.
func TestBwrapKeepsNoLinkToOwn(t *testing.T) {
	b := needs(t, Bwrap)
	home := besidetmp.Dir(t)
	config, link := filepath.Join(home, "dots/yaya"), filepath.Join(home, "yaya")
	if err := errors.Join(os.MkdirAll(config, 0o755), os.Symlink(config, link)); err != nil {
		t.Fatal(err)
	}
	b.Own = []string{link}
	p := profile(t, "guarded")
	p.Home = home
	got, err := b.start(t, p, home, nil, "sh", "-c", "mv yaya y2 && mkdir yaya && echo replaced")
	if err == nil || !strings.Contains(err.Error(), link) {
		t.Errorf("got %+v, %v; want an error that names %s", got, err, link)
	}
	b.Own = []string{config} // the folder itself
	if got, err = b.start(t, p, home, nil, "sh", "-c", "echo started"); err != nil || !strings.Contains(got.out, "started") {
		t.Errorf("without a link: got %+v, %v; want that it starts", got, err)
	}
}
