package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
)

// Uv is told to copy where it cannot make hard links from its cache, unless the user
// has said what it is to do.
func TestLinkModeOfUv(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			dir := besidetmp.Dir(t)
			if err := errors.Join(os.MkdirAll(dir+"/ws", 0o755), os.MkdirAll(dir+"/cache", 0o755)); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				name, profile string
				env           []string
				want          string // with mounts; Landlock has the host's
			}{
				{"command", "command", nil, "copy, apart"},
				{"check", "check", nil, "copy, apart"},
				{"set by the user", "command", []string{"UV_LINK_MODE=symlink"}, "symlink, apart"},
				{"server", "server", nil, "none, apart"},
			} {
				want := c.want
				if backend == Landlock {
					want = strings.Replace(strings.TrimSuffix(want, "apart")+"one", "copy", "none", 1)
				}
				p := profile(t, c.profile)
				p.Home, p.Cache, p.Write = dir+"/home", dir+"/cache", open(t, dir+"/ws")
				got, err := b.start(t, p, dir+"/ws", c.env, "sh", "-c", `touch "$UV_CACHE_DIR.f"; ln -f "$UV_CACHE_DIR.f" f 2>/dev/null && same=one; echo "${UV_LINK_MODE:-none}, ${same:-apart}"`)
				if err != nil || strings.TrimSpace(got.out) != want {
					t.Errorf("%s: got %q, %v; want %q", c.name, got.out, err, want)
				}
			}
		})
	}
}
