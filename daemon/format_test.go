package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// dataOf opens the data directory of a test without looking at its format.
func dataOf(t *testing.T, g *Flags) *os.Root {
	t.Helper()
	if err := os.MkdirAll(g.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	data, err := os.OpenRoot(g.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = data.Close() })
	return data
}

func (g *Flags) openForTest(t *testing.T) (notes []string, err error) {
	t.Helper()
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	data, notes, err := p.openData()
	if err == nil {
		err = data.Close()
	}
	return notes, err
}

// OP-40: a new data directory has the present format, one without a file that says so is
// upgraded by whoever opens it first, and the log says it.
func TestDataFormat(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		notes string
	}{
		"a new one":            {nil, "[]"},
		"locks alone":          {map[string]string{"yaya.lock": "1\n", "config.lock": ""}, "[]"},
		"one of yaya 0.1":      {map[string]string{"config.json": "{}"}, "is upgraded from format 1 to 2"},
		"the present":          {map[string]string{formatFile: "2\n", "config.json": "{}"}, "[]"},
		"the present, and who": {map[string]string{formatFile: "2\nformat 2 of yaya's data directory, written by yaya 0.2.0\n"}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFlags(t)
			data := dataOf(t, g)
			for file, content := range c.files {
				write(t, filepath.Join(g.DataDir, file), content)
			}
			notes, err := g.openForTest(t)
			if got := fmt.Sprint(notes); err != nil || !strings.Contains(got, c.notes) {
				t.Errorf("opening = %s, %v, want %q", got, err, c.notes)
			}
			if format, _, err := formatOf(data); format != DataFormat || err != nil {
				t.Errorf("formatOf = %d, %v, want %d", format, err, DataFormat)
			}
			if notes, err := g.openForTest(t); err != nil || len(notes) > 0 {
				t.Errorf("opening again = %q, %v, want nothing", notes, err)
			}
		})
	}
}

// OP-41: a directory of a newer yaya is refused with the reason and what to do, whoever opens
// it, and nothing in it changes.
func TestNewerFormat(t *testing.T) {
	g := newFlags(t)
	dataOf(t, g)
	file := filepath.Join(g.DataDir, formatFile)
	content := "3\nformat 3 of yaya's data directory, written by yaya 0.9.1\n"
	write(t, file, content)
	p, err := g.Paths()
	if err != nil {
		t.Fatal(err)
	}
	want := "has format 3, and this yaya (" + Version() + ") works with formats up to 2: run the yaya that wrote it (version 0.9.1), or restore a backup from before the upgrade"
	for name, open := range map[string]func() error{
		"to look":     func() error { _, err := p.OpenData(); return err },
		"to work":     func() error { _, err := p.hold(); return err },
		"to serve":    func() error { _, err := Serve(t.Context(), g, Options{Listen: &Listen{}}); return err },
		"to back up":  func() error { _, err := g.Backup(t.Context(), BackupOptions{To: t.TempDir()}); return err },
		"for servers": func() error { return WithServers(t.Context(), g, func(*Backend) error { return nil }) },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	entries, err := os.ReadDir(g.DataDir)
	if raw, rerr := os.ReadFile(file); err != nil || rerr != nil || string(raw) != content || len(entries) != 1 {
		t.Errorf("the directory holds %v with %q, want it unchanged", entries, raw)
	}
}

// OP-41: a damaged file of the format is named with the command that mends it; a cut may
// leave one that says the same.
func TestDamagedFormat(t *testing.T) {
	g := newFlags(t)
	data := dataOf(t, g)
	if err := writeFormat(data, DataFormat); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(g.DataDir, formatFile)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{"empty": nil, "a word": []byte("two\n"), "zero": []byte("0\n")}
	for n := range whole {
		flipped := append([]byte(nil), whole...)
		flipped[n] ^= 1 << (n % 8)
		cases[fmt.Sprintf("bit %d of byte %d", n%8, n)] = flipped
		cases[fmt.Sprintf("cut to %d bytes", n)] = whole[:n]
	}
	for name, content := range cases {
		write(t, file, string(content))
		format, _, err := formatOf(data)
		if err != nil && !strings.Contains(err.Error(), "echo 2 > "+file) {
			t.Errorf("%s: %v, want the command that mends it", name, err)
		}
		if err == nil && format != DataFormat {
			t.Errorf("%s: it is taken for format %d", name, format)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := g.openForTest(t); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a folder in its place: %v, want it named", err)
	}
}

// OP-40: a migration that fails or is killed leaves a directory of the format before it, and
// the next opening tries again, from where it was.
func TestMigrationsAreTriedAgain(t *testing.T) {
	g := newFlags(t)
	data := dataOf(t, g)
	write(t, filepath.Join(g.DataDir, "config.json"), "{}")
	var ran []int
	broken := errors.New("the disk is full")
	fails := 3
	step := func(to int) migration {
		return migration{to, func(*os.Root) error {
			ran = append(ran, to)
			if to == fails {
				return broken
			}
			return nil
		}}
	}
	steps := []migration{step(2), step(3), step(4)}
	from, err := upgradeTo(data, 4, steps)
	if format, _, _ := formatOf(data); !errors.Is(err, broken) || from != 1 || format != 2 || !strings.Contains(err.Error(), "to format 3") {
		t.Errorf("upgrade = %d, %v, and the format is %d; want it to stop at 2", from, err, format)
	}
	fails = 0
	if from, err = upgradeTo(data, 4, steps); err != nil || from != 2 {
		t.Errorf("upgrade = %d, %v, want 2", from, err)
	}
	if got, want := fmt.Sprint(ran), "[2 3 3 4]"; got != want {
		t.Errorf("migrations that ran: %s, want %s", got, want)
	}
	if format, _, err := formatOf(data); format != 4 || err != nil {
		t.Errorf("formatOf = %d, %v, want 4", format, err)
	}
}

// OP-41: beside an older yaya that runs, an older directory stays as it is, and the error
// says what to restart.
func TestOlderYayaRuns(t *testing.T) {
	g := newFlags(t)
	data := dataOf(t, g)
	write(t, filepath.Join(g.DataDir, "config.json"), "{}")
	synctest.Test(t, func(t *testing.T) {
		unlock, err := lock(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.openForTest(t); !errors.Is(err, errRunning) || !strings.Contains(err.Error(), "restart it with this version") {
			t.Errorf("opening = %v, want that the older yaya is restarted", err)
		}
		if _, err := data.Lstat(formatFile); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory was changed: %v", err)
		}
		unlock()
		if notes, err := g.openForTest(t); err != nil || len(notes) != 1 {
			t.Errorf("opening = %q, %v, want that it is upgraded", notes, err)
		}
	})
}
