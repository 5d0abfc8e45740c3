package certs_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/certs/certstest"
)

// kept is the only file of a kind in the folder of the authority.
func (w *world) kept(end string) string {
	w.t.Helper()
	var found []string
	for _, dir := range w.entries(".") {
		for _, name := range w.entries(dir) {
			if strings.HasSuffix(name, end) {
				found = append(found, dir+"/"+name)
			}
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("files %q, want one that ends in %s", found, end)
	}
	return found[0]
}

func (w *world) entries(dir string) (names []string) {
	w.t.Helper()
	f, err := w.dir.Open(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if names, err = f.Readdirnames(100); err != nil {
		w.t.Fatal(err)
	}
	return names
}

// ACM-1: a yaya that is started again and again asks the authority as seldom as one that
// runs: pauses, and how many tries have failed, outlive it.
func TestPausesOutliveRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(w http.ResponseWriter, r *http.Request) bool
		orders int // in six hours, at most
	}{
		"refused": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/order" {
				certstest.Refuse(w, 403, "rejectedIdentifier", "no")
			}
			return r.URL.Path == "/order"
		}, 5},
		"too many": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/order" {
				w.Header().Set("Retry-After", "36000")
				certstest.Refuse(w, 429, "rateLimited", "too many")
			}
			return r.URL.Path == "/order"
		}, 1},
		"silence, until yaya ends": {func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/order" {
				<-r.Context().Done()
			}
			return r.URL.Path == "/order"
		}, 6 * 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				orders := 0
				w.ca.Tamper(func(rw http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == "/order" {
						orders++
					}
					return c.tamper(rw, r)
				})
				for range 6 * 60 * 3 { // each twenty seconds
					w.start("yaya.example")
					pass(20 * time.Second)
					w.stop()
				}
				if orders == 0 || orders > c.orders {
					t.Errorf("got %d orders in six hours, want 1 to %d", orders, c.orders)
				}
				w.start("yaya.example")
				if s := w.Status()[0]; s.Err == nil || !s.Next.After(time.Now()) {
					t.Errorf("got %+v after a start, want why it waits", s)
				}
				w.stop()
				if st, err := w.dir.Stat(w.kept(".retry.json")); err != nil || st.Mode().Perm() != 0o600 {
					t.Errorf("the file has mode %v, %v", st.Mode(), err)
				}
				w.ca.Tamper(nil)
				w.start("yaya.example")
				defer w.stop()
				pass(13 * time.Hour)
				w.leaf("yaya.example")
				if _, err := w.dir.Stat(strings.TrimSuffix(w.kept(".pem"), ".pem") + ".retry.json"); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the pause is kept although there is a certificate: %v", err)
				}
			})
		})
	}
}

// ACM-1: a file that somebody has put there neither keeps a name from its certificate, nor
// is followed, nor reaches a terminal.
func TestHostilePause(t *testing.T) {
	for name, content := range map[string]string{
		"far ahead":    `{"next":"9999-12-31T23:59:59Z","failed":9223372036854775807,"why":"\u001b[31mno"}`,
		"long ago":     `{"next":"0001-01-01T00:00:00Z","failed":-5}`,
		"not JSON":     `{`,
		"another type": `{"next":true}`,
		"huge":         `{"why":"` + strings.Repeat("x", 1<<20) + `"}`,
		"a link":       "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.ca.Tamper(func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(503); return true })
				w.start("yaya.example")
				pass(time.Second * 30)
				w.stop()
				w.ca.Tamper(nil)
				file := w.kept(".retry.json")
				if err := w.dir.Remove(file); err != nil {
					t.Fatal(err)
				}
				err := w.dir.WriteFile(file, []byte(content), 0o600)
				if name == "a link" {
					err = errors.Join(w.dir.Remove(file), w.dir.Symlink("/dev/zero", file))
				}
				if err != nil {
					t.Fatal(err)
				}
				w.start("yaya.example")
				defer w.stop()
				if s := w.Status()[0]; s.Err != nil && strings.Contains(s.Err.Error(), "\x1b") {
					t.Errorf("got %q, want no escape character in it", s.Err)
				}
				pass(49 * time.Hour)
				w.leaf("yaya.example")
			})
		})
	}
}
