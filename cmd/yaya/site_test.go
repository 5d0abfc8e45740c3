package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// The documentation site in a real browser: axe-core finds nothing on a page of each kind, on a
// desktop and a phone, light and dark; nothing is wider than the screen, or loaded from
// elsewhere; the search finds, without a mouse, too; and without scripts the site is whole.
func TestSiteLooks(t *testing.T) {
	t.Parallel()
	needPeers(t)
	out := t.TempDir()
	if said, err := exec.CommandContext(t.Context(), buildTool(t, "github.com/yaya-ai/yaya/internal/site"), "-root", "../..", "-out", out).CombinedOutput(); err != nil {
		t.Fatalf("site: %v\n%s", err, said)
	}
	files := http.FileServer(http.Dir(out))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; base-uri 'none'; form-action 'none'")
		files.ServeHTTP(w, r)
	}))
	defer srv.Close()
	b := newBox(t)
	b.addr = strings.TrimPrefix(srv.URL, "http://")
	b.scenario("site", nil, nil)
}
