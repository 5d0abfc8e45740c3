package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A link among what configures Git gives nothing: neither credentials, nor a file of
// yaya's, nor a cache of others. In the workspace, what it leads to is read-only.
func TestProtectGivesNothing(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			b.Own = []string{p.own}
			git := filepath.Join(p.ws, ".git")
			if err := os.WriteFile(p.secret, []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			links := map[string]string{
				"modules/x/hooks": filepath.Dir(p.secret), "modules/y/hooks": p.key, "modules/z/config": p.secret, "modules/c/hooks": p.dir + "/caches",
				"modules/in/hooks": p.ws + "/ours",
			}
			for _, dir := range []string{p.ws + "/ours", p.dir + "/caches"} {
				if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/f", []byte("inside"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			for name, to := range links {
				at := filepath.Join(git, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(filepath.Join(filepath.Dir(at), "HEAD"), []byte("ref"), 0o600), os.Symlink(to, at)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(p.key, []byte("of yaya"), 0o600); err != nil {
				t.Fatal(err)
			}
			pol := profile(t, "command")
			pol.Home, pol.Hide = p.home, append(pol.Hide, p.dir+"/caches")
			if _, err := pol.Work(p.ws); err != nil {
				t.Fatal(err)
			}
			got, err := b.start(t, pol, p.ws, nil, "sh", "-c", "cat "+p.secret+" "+p.key+" "+p.dir+"/caches/f; cat .git/modules/[xyzc]/hooks .git/modules/z/config .git/modules/[xyzc]/hooks/*; echo x > ours/f")
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range []string{"secret\n", "of yaya", "inside"} {
				if strings.Contains(got.out+"\n", data) {
					t.Errorf("got %q, which has %q", got.out, data)
				}
			}
			if data, err := os.ReadFile(p.ws + "/ours/f"); backend != Landlock && (err != nil || string(data) != "inside") {
				t.Errorf("what a link in the workspace leads to is %q, %v; want it unchanged", data, err)
			}
		})
	}
}
