package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is an entry as a registry sends it.
func wire(server, status string) string {
	return fmt.Sprintf(`{"server":%s,"_meta":{"io.modelcontextprotocol.registry/official":{"status":%q,"updatedAt":"2026-10-01T00:00:00Z"}}}`, server, status)
}

const weather = `{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"io.github.sky/weather","description":"Weather of the world","version":"1.2.3","unknown":{"a":1},
"packages":[{"registryType":"npm","identifier":"@sky/weather","version":"1.2.3","transport":{"type":"stdio"},"environmentVariables":[{"name":"SKY_KEY","isRequired":true,"isSecret":true,"description":"API key"},{"name":"UNITS","default":"metric","choices":["metric","imperial"]}]}],
"remotes":[{"type":"streamable-http","url":"https://sky.example.com/mcp","headers":[{"name":"Authorization","value":"Bearer {token}","variables":{"token":{"isRequired":true,"isSecret":true}}}]}]}`

// registry answers for servers by their wire form.
type registry struct {
	*httptest.Server
	asked   atomic.Int64
	entries []string
	down    atomic.Bool
}

func newRegistry(t *testing.T, entries ...string) *registry {
	r := &registry{entries: entries}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers", func(w http.ResponseWriter, q *http.Request) {
		var out []string
		for _, e := range r.entries {
			var x struct {
				Server struct {
					Name string `json:"name"`
				} `json:"server"`
			}
			if json.Unmarshal([]byte(e), &x) != nil || strings.Contains(x.Server.Name, q.URL.Query().Get("search")) {
				out = append(out, e)
			}
		}
		fmt.Fprintf(w, `{"servers":[%s],"metadata":{"nextCursor":"","count":%d}}`, strings.Join(out, ","), len(out))
	})
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/{version}", func(w http.ResponseWriter, q *http.Request) {
		for _, e := range r.entries {
			var x struct {
				Server struct {
					Name    string `json:"name"`
					Version string `json:"version"`
				} `json:"server"`
			}
			if json.Unmarshal([]byte(e), &x) == nil && x.Server.Name == q.PathValue("name") && (q.PathValue("version") == "latest" || x.Server.Version == q.PathValue("version")) {
				fmt.Fprint(w, e)
				return
			}
		}
		http.Error(w, `{"error":"Server not found"}`, http.StatusNotFound)
	})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		if r.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

// clock is a time that a test sets.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.at.Load(), 0) }

func newCatalog(t *testing.T, data *os.Root, registries ...Registry) (*Catalog, *clock) {
	c := &clock{}
	c.at.Store(1_800_000_000)
	return New(Config{Registries: func() []Registry { return registries }, Data: data, Now: c.now, Warn: func(err error) { t.Error(err) }}), c
}

func dataFolder(t *testing.T) *os.Root {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func names(all []Entry) (out []string) {
	for _, e := range all {
		out = append(out, e.Registry+" "+e.Server.Name)
	}
	return out
}

func TestSearch(t *testing.T) {
	other := `{"name":"com.example/storms","title":"Storms","description":"Tells the weather of the sea","version":"2.0.0"}`
	r := newRegistry(t, wire(weather, "active"), wire(other, "active"), wire(strings.ReplaceAll(weather, "io.github.sky", "io.github.old"), "deprecated"))
	c, _ := newCatalog(t, dataFolder(t), Registry{"official", r.URL})
	if _, err := c.Search(t.Context(), "", "official:"); err != nil { // has been browsed, and is known
		t.Fatal(err)
	}
	found, err := c.Search(t.Context(), "weather", "")
	if err != nil {
		t.Fatal(err)
	}
	got := names(found.Entries)
	if len(got) < 3 || got[0] != "official io.github.sky/weather" || got[1] != "official com.example/storms" || got[len(got)-1] != "official io.github.old/weather" {
		t.Errorf("found %q: the exact name has to be first, a description next, what is deprecated last", got)
	}
	for query, want := range map[string]string{"github": "bundled bundled/github", "bundled/github": "bundled bundled/github", "@playwright/mcp": "bundled bundled/playwright", "drive a browser": "bundled bundled/playwright", "query a database": "bundled bundled/"} {
		found, err := c.Search(t.Context(), query, "")
		if err != nil || len(found.Entries) == 0 || !strings.HasPrefix(names(found.Entries)[0], want) {
			t.Errorf("Search(%q) = %q, %v; want %s first", query, names(found.Entries), err, want)
		}
	}
	if _, err := c.Search(t.Context(), strings.Repeat("x", MaxQuery+1), ""); err == nil {
		t.Error("a query that is too long was accepted")
	}
	for _, cursor := range []string{"nobody:", "official:" + strings.Repeat("x", 2000), "official:\u202e", "x"} {
		if _, err := c.Search(t.Context(), "", cursor); !errors.Is(err, ErrCursor) {
			t.Errorf("cursor %.30q: %v", cursor, err)
		}
	}
}

func TestBrowse(t *testing.T) {
	r := newRegistry(t, wire(weather, "active"))
	c, _ := newCatalog(t, nil, Registry{"one", r.URL}, Registry{"two", r.URL + "/"})
	var got []string
	cursor := ""
	for {
		found, err := c.Search(t.Context(), "", cursor)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, names(found.Entries)...)
		if cursor = found.Next; cursor == "" {
			break
		}
	}
	if n := len(bundled()); len(got) != n+2 || got[n] != "one io.github.sky/weather" || got[n+1] != "two io.github.sky/weather" {
		t.Errorf("pages end with %q", got[max(0, len(got)-3):])
	}
}

func TestAnswersAreKept(t *testing.T) {
	r := newRegistry(t, wire(weather, "active"))
	data := dataFolder(t)
	reg := Registry{"official", r.URL}
	c, at := newCatalog(t, data, reg)
	search := func(c *Catalog) Found {
		t.Helper()
		found, err := c.Search(t.Context(), "weather", "")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	search(c)
	search(c)
	if n := r.asked.Load(); n != 1 {
		t.Errorf("%d requests, want 1: an answer is used for an hour", n)
	}
	at.at.Add(int64(Fresh/time.Second) + 1)
	r.down.Store(true)
	c, later := newCatalog(t, data, reg) // another process
	later.at.Store(at.at.Load())
	found := search(c)
	if len(found.Entries) == 0 || found.Entries[0].Server.Name != "io.github.sky/weather" || found.Sources[0].Err == nil || !found.Sources[0].Seen.Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("without the registry: %q, %+v", names(found.Entries), found.Sources)
	}
	e, stale, err := c.Get(t.Context(), "", "io.github.sky/weather", "")
	if err != nil || stale == nil || e.Server.Version != "1.2.3" || !e.Seen.Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("Get = %+v, stale %v, %v", e.Server, stale, err)
	}
	if n := r.asked.Load(); n != 2 {
		t.Errorf("%d requests, want 2: a registry that did not answer is left alone for a minute", n)
	}
	r.down.Store(false)
	later.at.Add(int64((Fresh + again) / time.Second))
	if search(c).Sources[0].Err != nil {
		t.Error("the registry is not asked again")
	}
}

// A cache drops its oldest queries.
func TestKeptIsBounded(t *testing.T) {
	m := map[string]asked{}
	for i := range maxQueries + 10 {
		m[fmt.Sprint(i)] = asked{At: time.Unix(int64(i), 0)}
	}
	oldest(m, maxQueries, func(a asked) time.Time { return a.At })
	if _, old := m["9"]; len(m) != maxQueries || old {
		t.Errorf("%d are left, the oldest among them: %v", len(m), old)
	}
}

func TestGet(t *testing.T) {
	one, two := newRegistry(t, wire(weather, "active")), newRegistry(t, wire(strings.ReplaceAll(weather, "1.2.3", "9.9.9"), "active"))
	c, _ := newCatalog(t, nil, Registry{"one", one.URL}, Registry{"two", two.URL})
	if _, _, err := c.Get(t.Context(), "", "io.github.sky/weather", ""); !errors.Is(err, ErrSeveral) {
		t.Errorf("of two registries: %v", err)
	}
	if e, _, err := c.Get(t.Context(), "two", "io.github.sky/weather", ""); err != nil || e.Server.Version != "9.9.9" {
		t.Errorf("of the named one: %v, %v", e.Server.Version, err)
	}
	if e, _, err := c.Get(t.Context(), "", "io.github.sky/weather", "9.9.9"); err != nil || e.Registry != "two" {
		t.Errorf("a version: %v, %v", e.Registry, err)
	}
	if e, _, err := c.Get(t.Context(), "", "github", ""); err != nil || e.Registry != Bundled {
		t.Errorf("a short name: %v, %v", e.Registry, err)
	}
	for name, want := range map[string]error{"io.github.sky/none": ErrUnknown, "bundled/none": ErrUnknown} {
		if _, _, err := c.Get(t.Context(), "", name, ""); !errors.Is(err, want) {
			t.Errorf("Get(%q) = %v", name, err)
		}
	}
	for _, bad := range [][2]string{{"a/b/c", ""}, {"../x", ""}, {"a/b\x1b", ""}, {"io.github.sky/weather", "^1.0.0"}, {"io.github.sky/weather", "latest"}} {
		if _, _, err := c.Get(t.Context(), "", bad[0], bad[1]); err == nil {
			t.Errorf("Get(%q, %q) was accepted", bad[0], bad[1])
		}
	}
}

// A registry is hostile: none of these harms the search, and what else it has is found.
func TestHostileAnswers(t *testing.T) {
	one := func(server string) string { return wire(server, "active") }
	packages := strings.TrimSuffix(strings.Repeat(`{"registryType":"npm","identifier":"a","version":"1.0.0"},`, 10_000), ",")
	for name, entry := range map[string]string{
		"10 MB description":      one(`{"name":"evil/x","version":"1.0.0","description":"` + strings.Repeat("x", 70<<10) + `"}`),
		"10,000 packages":        one(`{"name":"evil/x","version":"1.0.0","packages":[` + packages + `]}`),
		"33 packages":            one(`{"name":"evil/x","version":"1.0.0","packages":[` + strings.TrimSuffix(strings.Repeat(`{},`, 33), ",") + `]}`),
		"not an object":          `7`,
		"a name with a terminal": one(`{"name":"evil/x\u001b[2J","version":"1.0.0"}`),
		"a name with bidi":       one(`{"name":"evil/x\u202egnp","version":"1.0.0"}`),
		"a name that is a path":  one(`{"name":"../../etc","version":"1.0.0"}`),
		"a range":                one(`{"name":"evil/x","version":"^1.0.0"}`),
		"no version":             one(`{"name":"evil/x"}`),
		"an unknown status":      wire(`{"name":"evil/x","version":"1.0.0"}`, "approved"),
		"deleted":                wire(`{"name":"evil/x","version":"1.0.0"}`, "deleted"),
		"numbers for names":      one(`{"name":7,"version":"1.0.0"}`),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, entry, one(weather))
			c, _ := newCatalog(t, nil, Registry{"official", r.URL})
			found, err := c.Search(t.Context(), "", "official:")
			if err != nil || found.Sources[0].Err != nil {
				t.Fatal(err, found.Sources)
			}
			if got := names(found.Entries); !slices.Equal(got, []string{"official io.github.sky/weather"}) || found.Sources[0].Skipped != 1 {
				t.Errorf("found %q, %d skipped", got, found.Sources[0].Skipped)
			}
		})
	}
}

func TestHostileRegistries(t *testing.T) {
	inside := newRegistry(t, wire(weather, "active"))
	slow := make(chan struct{})
	defer close(slow)
	for name, h := range map[string]http.HandlerFunc{
		"cross-origin redirect": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, inside.URL+q.URL.RequestURI(), http.StatusFound)
		},
		"10 MB": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"servers":[],"x":"` + strings.Repeat("x", maxAnswer) + `"}`))
		},
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"500":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(h)
			defer srv.Close()
			c, _ := newCatalog(t, nil, Registry{"official", srv.URL})
			found, err := c.Search(t.Context(), "github", "")
			if err != nil || found.Sources[0].Err == nil || len(found.Entries) == 0 {
				t.Errorf("Search = %d entries, %v, %v: want yaya's own list, and an error of the registry", len(found.Entries), found.Sources, err)
			}
			if _, _, err := c.Get(t.Context(), "official", "io.github.sky/weather", ""); err == nil {
				t.Error("Get found an entry")
			}
		})
	}
	if n := inside.asked.Load(); n != 0 {
		t.Errorf("the redirect led %d requests to another origin", n)
	}
	t.Run("slow", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-slow:
			case <-q.Context().Done():
			}
		}))
		defer srv.Close()
		c, _ := newCatalog(t, nil, Registry{"official", srv.URL})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Search(ctx, "github", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("Search of one who went away: %v", err)
		}
	})
}

// An entry of another name or version than the one that was asked for is refused.
func TestAnswersAnotherServer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(wire(weather, "active"))) }))
	defer srv.Close()
	c, _ := newCatalog(t, nil, Registry{"official", srv.URL})
	for _, x := range [][2]string{{"io.github.other/weather", ""}, {"io.github.sky/weather", "1.0.0"}} {
		if _, _, err := c.Get(t.Context(), "official", x[0], x[1]); err == nil {
			t.Errorf("Get(%q, %q) took another server", x[0], x[1])
		}
	}
}

func TestDigest(t *testing.T) {
	e, err := decode("official", []byte(wire(weather, "active")), time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	later := e
	later.Seen = time.Unix(2, 0)
	if e.Digest() != later.Digest() {
		t.Error("the digest depends on when it was looked at")
	}
	for old, now := range map[string]string{"@sky/weather": "@sky/weathen", "sky.example.com": "evil.example.com", `"name":"UNITS"`: `"name":"UNIT"`, "1.2.3": "1.2.4", "active": "deprecated"} {
		raw := strings.ReplaceAll(wire(weather, "active"), old, now)
		other, err := decode("official", []byte(raw), time.Unix(1, 0))
		if err != nil || other.Digest() == e.Digest() {
			t.Errorf("with %s for %s the digest is the same (%v)", now, old, err)
		}
	}
}

func TestRegistryPath(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got = q.URL.EscapedPath()
		_, _ = w.Write([]byte(wire(weather, "active")))
	}))
	defer srv.Close()
	c, _ := newCatalog(t, nil, Registry{"official", srv.URL + "/base/"})
	if _, _, err := c.Get(t.Context(), "", "io.github.sky/weather", "1.2.3"); err != nil {
		t.Fatal(err)
	}
	if want := "/base/v0.1/servers/" + url.PathEscape("io.github.sky/weather") + "/versions/1.2.3"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

// An entry that cannot be used is an error about itself: its registry answers, and what else it
// has is found, as what it had before.
func TestBadEntrySparesItsRegistry(t *testing.T) {
	const other = `{"name":"com.example/storms","description":"Storms","version":"2.0.0"}`
	for name, x := range map[string]struct{ bad, want string }{
		"latest":            {wire(strings.Replace(weather, `"version":"1.2.3"`, `"version":"latest"`, 1), "active"), `its entry io.github.sky/weather cannot be used: "latest" is not an exact version`},
		"an unknown status": {wire(weather, "approved"), `its status "approved" is not known`},
		"too large":         {wire(strings.Replace(weather, "Weather of", strings.Repeat("x", maxEntry), 1), "active"), "larger than 64 KiB"},
		"10 MB":             {wire(strings.Replace(weather, "Weather of", strings.Repeat("x", maxAnswer), 1), "active"), "larger than 8 MiB"},
		"no version":        {wire(`{"name":"io.github.sky/weather"}`, "active"), "is not an exact version"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, wire(weather, "active"), wire(other, "active"))
			c, at := newCatalog(t, nil, Registry{"official", r.URL})
			if _, _, err := c.Get(t.Context(), "", "io.github.sky/weather", ""); err != nil {
				t.Fatal(err)
			}
			r.entries[0] = x.bad
			at.at.Add(int64(Fresh / time.Second))
			for range 2 {
				_, stale, err := c.Newest(t.Context(), Origin{Registry: "official", Name: "io.github.sky/weather", Version: "1.2.3"})
				if err == nil || stale != nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("Newest = stale %v, %v, want the error %q", stale, err, x.want)
				}
			}
			if e, stale, err := c.Get(t.Context(), "", "com.example/storms", ""); err != nil || stale != nil || e.Server.Version != "2.0.0" {
				t.Errorf("Get of another entry = %q, stale %v, %v, want 2.0.0", e.Server.Version, stale, err)
			}
			if found, err := c.Search(t.Context(), "storms", ""); err != nil || found.Sources[0].Err != nil {
				t.Errorf("Search = %v, %v, want no error of the registry", found.Sources, err)
			}
		})
	}
}

// A version that a registry does not have says nothing about the newest one.
func TestMissingVersionKeepsTheNewest(t *testing.T) {
	r := newRegistry(t, wire(weather, "active"))
	c, _ := newCatalog(t, nil, Registry{"official", r.URL})
	if _, err := c.Search(t.Context(), "", "official:"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Get(t.Context(), "", "io.github.sky/weather", "9.9.9"); !errors.Is(err, ErrUnknown) {
		t.Errorf("Get of a version that is missing: %v, want %v", err, ErrUnknown)
	}
	if found, err := c.Search(t.Context(), "", "official:"); err != nil || len(found.Entries) != 1 {
		t.Errorf("Search = %q, %v, want the entry", names(found.Entries), err)
	}
}

// A proxy that answers with its page says nothing about an entry.
func TestPageOfAProxyIsNotAnEntry(t *testing.T) {
	r := newRegistry(t, wire(weather, "active"))
	c, at := newCatalog(t, nil, Registry{"official", r.URL})
	if _, _, err := c.Get(t.Context(), "", "io.github.sky/weather", ""); err != nil {
		t.Fatal(err)
	}
	at.at.Add(int64(Fresh / time.Second))
	r.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	if e, stale, err := c.Get(t.Context(), "", "io.github.sky/weather", ""); err != nil || stale == nil || e.Server.Version != "1.2.3" {
		t.Errorf("Get = %q, stale %v, %v, want the earlier entry, and why it is old", e.Server.Version, stale, err)
	}
}

// A registry whose cursors go round ends where they do, and the registries after it can be browsed.
func TestBrowseEndsALoop(t *testing.T) {
	for name, cursors := range map[string]map[string]string{
		"the same each time":     {"": "a", "a": "a"},
		"one of the page before": {"": "a", "a": "b", "b": "a"},
		"further back":           {"": "a", "a": "b", "b": "c", "c": "d", "d": "b"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				at := q.URL.Query().Get("cursor")
				fmt.Fprintf(w, `{"servers":[%s],"metadata":{"nextCursor":%q}}`, wire(`{"name":"a/x`+at+`","version":"1.0.0"}`, "active"), cursors[at])
			}))
			defer srv.Close()
			c, at := newCatalog(t, nil, Registry{"loop", srv.URL}, Registry{"next", newRegistry(t, wire(weather, "active")).URL})
			for _, again := range []string{"at first", "from the cache", "after an hour"} {
				if again == "after an hour" {
					at.at.Add(int64(Fresh / time.Second))
				}
				var got []string
				cursor := "loop:"
				for range 20 {
					found, err := c.Search(t.Context(), "", cursor)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, names(found.Entries)...)
					if cursor = found.Next; cursor == "" {
						break
					}
				}
				if cursor != "" || len(got) != len(cursors)+1 || got[len(got)-1] != "next io.github.sky/weather" {
					t.Errorf("%s it lists %q and ends with the cursor %q, want %d servers, and the next registry's last", again, got, cursor, len(cursors)+1)
				}
			}
		})
	}
}

// A registry that redirects to itself without end is not said to lead elsewhere.
func TestRedirectLoop(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, q.URL.Path, http.StatusFound) }))
	defer srv.Close()
	c, _ := newCatalog(t, nil, Registry{"official", srv.URL})
	_, _, err := c.Get(t.Context(), "", "io.github.sky/weather", "")
	if err == nil || !strings.Contains(err.Error(), "it redirects 4 times") || strings.Contains(err.Error(), "another origin") {
		t.Errorf("Get = %v, want an error about the redirects", err)
	}
}
