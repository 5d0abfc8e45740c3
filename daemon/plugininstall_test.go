package daemon

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/plugins/fetch"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// folderPackage is the package of a folder, with a temporary folder that its end removes.
func folderPackage(t *testing.T, name string) (p *installed.Package, temporary string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.toml"), []byte("name = \""+name+"\"\nversion = \"1.0.0\"\ncategory = \"tool\"\nrun = [\"python3\", \"main.py\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := installed.Fetch(t.Context(), new(fetch.Client), dir)
	if err == nil {
		temporary, err = p.Temporary()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, temporary
}

// Packages that were shown are held for a while, a few at a time, and taken once; their files go
// with them.
func TestProposals(t *testing.T) {
	t.Parallel()
	h := proposals{failed: func(err error) { t.Errorf("the end of a package = %v, want no error", err) }}
	there := func(at string) bool { _, err := os.Stat(at); return err == nil }
	var packages []*installed.Package
	var files []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		p, at := folderPackage(t, name)
		if err := h.hold(p); err != nil {
			t.Fatal(err)
		}
		packages, files = append(packages, p), append(files, at)
	}
	if there(files[0]) || !there(files[1]) {
		t.Errorf("the files are there: %v, %v; want the first package gone in favour of the last", there(files[0]), there(files[1]))
	}
	b := packages[1]
	for _, c := range []struct {
		what, source, digest string
		want                 *installed.Package
	}{
		{"another digest", b.Source, "sha256:0", nil},
		{"another source", "elsewhere", b.Digest, nil},
		{"the package", b.Source, b.Digest, b},
		{"the package again", b.Source, b.Digest, nil},
	} {
		if got := h.take(c.source, c.digest); got != c.want {
			t.Errorf("%s: take() = %+v, want %+v", c.what, got, c.want)
		}
	}
	if !there(files[1]) {
		t.Error("the files of the taken package are gone")
	}
	h.held[0].until = time.Now().Add(-time.Second)
	if got := h.take(packages[2].Source, packages[2].Digest); got != nil {
		t.Errorf("take() of one whose time is over = %+v, want none", got)
	}
	again, at := folderPackage(t, "f")
	if err := h.hold(again); err != nil || there(files[2]) {
		t.Errorf("hold() = %v; the files whose time is over are there: %v, want them gone", err, there(files[2]))
	}
	if err := h.close(); err != nil || there(at) || there(files[3]) {
		t.Errorf("close() = %v; files are there: %v, %v, want them gone", err, there(at), there(files[3]))
	}
	late, at := folderPackage(t, "g")
	if err := h.hold(late); err == nil || there(at) {
		t.Errorf("hold() after the end = %v; the files are there: %v, want an error and no files", err, there(at))
	}
	if err := b.Close(); err != nil || there(files[1]) {
		t.Errorf("Close() = %v; the files are there: %v", err, there(files[1]))
	}
}

// A package that nobody installs ends by itself, whatever else is held.
func TestProposalsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := proposals{failed: func(err error) { t.Errorf("the end of a package = %v, want no error", err) }}
		there := func(at string) bool { _, err := os.Stat(at); return err == nil }
		var files []string
		for _, name := range []string{"a", "b", "c"} {
			p, at := folderPackage(t, name)
			if err := h.hold(p); err != nil {
				t.Fatal(err)
			}
			files = append(files, at)
			time.Sleep(time.Minute)
		}
		a := h.held[0].p
		if got := h.take(a.Source, a.Digest); got != a {
			t.Errorf("take() = %+v, want the package", got)
		}
		for _, c := range []struct {
			after  time.Duration
			second bool
		}{{proposalLife - 2*time.Minute - time.Second, true}, {time.Second, false}} {
			time.Sleep(c.after)
			synctest.Wait()
			if there(files[1]) != c.second || !there(files[2]) || !there(files[0]) {
				t.Errorf("the files are there: %v, %v, %v; want those of the second %v, the others", there(files[0]), there(files[1]), there(files[2]), c.second)
			}
		}
		if err := errors.Join(h.close(), a.Close()); err != nil || there(files[2]) || h.timer != nil {
			t.Errorf("close() = %v; the files are there: %v, a timer: %v; want neither", err, there(files[2]), h.timer)
		}
	})
}

// A start removes the folders of killed yayas after a day, and nothing else.
func TestRemoveStale(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	for name, c := range map[string]struct {
		age  time.Duration
		gone bool
	}{
		"yaya-plugin-123":       {25 * time.Hour, true},
		"yaya-plugin-124":       {23 * time.Hour, false},
		"yaya-plugin-state-125": {25 * time.Hour, false},
		"yaya-plugin-mine":      {25 * time.Hour, false},
		"other-126":             {25 * time.Hour, false},
	} {
		at := filepath.Join(dir, name)
		write(t, filepath.Join(at, "file"), "x")
		if err := os.Chtimes(at, now.Add(-c.age), now.Add(-c.age)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := os.Stat(filepath.Join(at, "file")); (err != nil) != c.gone {
				t.Errorf("%s: %v, want it gone: %v", name, err, c.gone)
			}
		})
	}
	target := filepath.Join(dir, "target")
	write(t, filepath.Join(target, "file"), "x")
	if err := os.Symlink(target, filepath.Join(dir, "yaya-plugin-127")); err != nil {
		t.Fatal(err)
	}
	if err := removeStale(dir, now); err != nil {
		t.Errorf("removeStale() = %v, want no error", err)
	}
	if _, err := os.Stat(filepath.Join(target, "file")); err != nil {
		t.Errorf("what a link leads to: %v, want it there", err)
	}
}

// tarFile writes an archive with one file.
func tarFile(t *testing.T, at, name, text string) {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	w := tar.NewWriter(zipped)
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o600})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err := errors.Join(err, w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, at, buf.String())
}

// Y-104: an update tells its differences, new permissions first.
func TestDifferences(t *testing.T) {
	t.Parallel()
	was := remote.Description{Version: "1.0.0", Category: "tool", Run: []string{"python3", "main.py"}, StrategyID: "a", Permissions: remote.Permissions{Network: []string{"a.example"}, Read: []string{"~/notes"}}}
	now := remote.Description{
		Version: "1.1.0", Category: "adapter", AdapterID: "b", Run: []string{"node", "main.js"}, Requires: []string{"other"}, Subscriptions: []string{"turn.failed"},
		Permissions: remote.Permissions{Network: []string{"b.example", "a.example"}, Env: []string{"TOKEN"}, Approvals: true},
	}
	got := differences(installed.Entry{Source: "npm:x@1.0.0"}, was, &installed.Package{Source: "npm:x@1.1.0", Description: now})
	want := []string{
		"NEW PERMISSION: reaches the host b.example", "NEW PERMISSION: gets the variable TOKEN", "NEW PERMISSION: answers approval requests for you", "no longer: reads ~/notes",
		"version: 1.0.0 → 1.1.0", "source: npm:x@1.0.0 → npm:x@1.1.0", "category: tool → adapter", "adapter_id: none → b", "strategy_id: a → none", "runs: python3 main.py → node main.js", "requires: none → other", "gets events: none → turn.failed",
	}
	if !slices.Equal(got, want) {
		t.Errorf("differences() =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := differences(installed.Entry{Source: "x"}, was, &installed.Package{Source: "x", Description: was}); len(got) != 0 {
		t.Errorf("differences() of the same = %q, want none", got)
	}
}
