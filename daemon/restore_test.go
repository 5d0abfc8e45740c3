package daemon

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/backup"
	"github.com/yaya-ai/yaya/internal/journal"
)

// OP-47: until a restore that is killed at any step is run again, no command works with the
// directory; run again, it restores everything.
func TestKilledRestore(t *testing.T) {
	g := newYaya(t)
	want := contents(t, g.DataDir)
	b := backedUp(t, g)
	for n := 1; ; n++ {
		to := elsewhere(t)
		p, err := to.Paths()
		if err != nil {
			t.Fatal(err)
		}
		ended := restoreUntil(t, to, b.File, n)
		if ended() {
			if n < 2*len(want) {
				t.Errorf("the restore of %d files took %d steps", len(want), n)
			}
			break
		}
		_, statErr := os.Lstat(filepath.Join(p.Data, restoringFile))
		if statErr == nil {
			if _, err := p.OpenData(); err == nil || !strings.Contains(err.Error(), "run yaya restore FILE again") {
				t.Fatalf("step %d: opening = %v, want that the restore did not end", n, err)
			}
		} else if got := contents(t, to.DataDir); len(got) > 0 && !maps.Equal(got, want) {
			t.Fatalf("step %d: a part was restored, and nothing says so: %q", n, slices.Sorted(maps.Keys(got)))
		} else if len(got) > 0 {
			continue // the mark is gone, and everything is there
		}
		if _, err := to.Restore(t.Context(), RestoreOptions{File: b.File}); err != nil {
			t.Fatalf("step %d: the next restore: %v", n, err)
		}
		if got := contents(t, to.DataDir); !maps.Equal(got, want) {
			t.Fatalf("step %d: the next restore has %q", n, slices.Sorted(maps.Keys(got)))
		}
	}
}

// restoreUntil restores until the n-th step.
func restoreUntil(t *testing.T, g *Flags, file string, n int) (ended func() bool) {
	t.Helper()
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := backup.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data := dataOf(t, g)
	fsys, ended := dies(journal.Root(data), n)
	r := &restorer{p: p, settings: g.settingsFile(p), data: data, fs: fsys, o: RestoreOptions{File: file}, out: new(Restored)}
	if err := r.run(t.Context(), in); (err == nil) != ended() {
		t.Fatalf("step %d: restore = %v", n, err)
	}
	return ended
}

// OP-45: a restore overwrites nothing, and what it refuses leaves the directory as it was.
func TestRestoreRefuses(t *testing.T) {
	g := newYaya(t)
	b := backedUp(t, g)
	whole, err := os.ReadFile(b.File)
	if err != nil {
		t.Fatal(err)
	}
	put := func(content []byte) string {
		file := filepath.Join(t.TempDir(), "backup")
		write(t, file, string(content))
		return file
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-8] ^= 4 // of gzip's sum: a bit elsewhere may be one that changes nothing
	for name, c := range map[string]struct {
		file   string
		before func(to *Flags)
		want   string
	}{
		"no file":                 {filepath.Join(t.TempDir(), "missing"), nil, "no such file"},
		"a cut one":               {put(whole[:len(whole)*2/3]), nil, "ends too early"},
		"a flipped bit":           {put(flipped), nil, "backup "},
		"text":                    {put([]byte("hello")), nil, "not a backup of yaya"},
		"a directory with data":   {b.File, func(to *Flags) { write(t, filepath.Join(to.DataDir, "config.json"), "{}") }, "is not empty"},
		"other servers":           {b.File, func(to *Flags) { write(t, filepath.Join(to.ConfigDir, "mcp.json"), "{}") }, "leave the configuration as it is with --data-only"},
		"a yaya that runs there":  {b.File, func(to *Flags) { held(t, to) }, "already running"},
		"data of a newer version": {put(newerBackup(t)), nil, "has format 9, and this yaya"},
		"names of no backup":      {put(oddBackup(t)), nil, "does not put into a backup"},
	} {
		t.Run(name, func(t *testing.T) {
			to := elsewhere(t)
			if c.before != nil {
				c.before(to)
			}
			had := [2]map[string]string{}
			for i, dir := range []string{to.DataDir, to.ConfigDir} {
				if _, err := os.Stat(dir); err == nil {
					had[i] = contents(t, dir)
				}
			}
			if _, err := to.Restore(t.Context(), RestoreOptions{File: c.file}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Restore = %v, want %q", err, c.want)
			}
			for i, dir := range []string{to.DataDir, to.ConfigDir} {
				if _, err := os.Stat(dir); err == nil {
					if got := contents(t, dir); len(got) != len(had[i]) {
						t.Errorf("%s holds %q, want what was there: %q", dir, slices.Sorted(maps.Keys(got)), had[i])
					}
				}
			}
		})
	}
	to := elsewhere(t)
	write(t, filepath.Join(to.ConfigDir, "mcp.json"), "{}")
	if r, err := to.Restore(t.Context(), RestoreOptions{File: b.File, DataOnly: true}); err != nil || len(r.Config) > 0 {
		t.Errorf("Restore of the data alone = %+v, %v", r, err)
	}
}

// held has the lock of a data directory until the test ends.
func held(t *testing.T, g *Flags) {
	t.Helper()
	unlock, err := lock(dataOf(t, g))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
}

func newerBackup(t *testing.T) []byte { return backupOf(t, 9, "data/config.json") }
func oddBackup(t *testing.T) []byte   { return backupOf(t, DataFormat, "elsewhere/config.json") }

func backupOf(t *testing.T, format int, name string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, backup.Head{Yaya: "0.9.0", DataFormat: format})
	if err == nil {
		err = w.Add(backup.Member{Name: name, Size: 2}, strings.NewReader("{}"))
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// OP-48: a backup names damaged files, and holds them byte for byte;
// such a backup is restored only if that is wanted.
func TestDamagedBackup(t *testing.T) {
	for name, file := range map[string]string{"a tape": "tapes/*.jsonl", "the memory": memoryFile, "the settings": "config.json"} {
		t.Run(name, func(t *testing.T) {
			g := newYaya(t)
			found, err := filepath.Glob(filepath.Join(g.DataDir, filepath.FromSlash(file)))
			if err != nil || len(found) == 0 {
				t.Fatalf("Glob(%s) = %v, %v; want a file", file, found, err)
			}
			raw, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			raw[len(raw)-1] ^= 1 // of a tape: its last line has no end
			if name != "a tape" {
				copy(raw, "this is neither JSON nor SQLite")
			}
			write(t, found[0], string(raw))
			b := backedUp(t, g)
			if name == "a tape" && damagedIn(b.Findings) != 1 {
				t.Errorf("findings = %+v, want the tape", b.Findings)
			}
			to := elsewhere(t)
			base := filepath.Base(found[0])
			if _, err := to.Restore(t.Context(), RestoreOptions{File: b.File}); err == nil || !strings.Contains(err.Error(), base) || !strings.Contains(err.Error(), "--damaged") {
				t.Errorf("Restore = %v, want it refused with %s", err, base)
			}
			r, err := to.Restore(t.Context(), RestoreOptions{File: b.File, Damaged: true})
			if err != nil || len(r.Damaged) == 0 {
				t.Fatalf("Restore of damaged files = %+v, %v", r, err)
			}
			name, _ := filepath.Rel(g.DataDir, found[0])
			if got, err := os.ReadFile(filepath.Join(to.DataDir, name)); err != nil || !bytes.Equal(got, raw) {
				t.Errorf("the damaged file has %d bytes, %v, want it as it was: %d", len(got), err, len(raw))
			}
		})
	}
}
