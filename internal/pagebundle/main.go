// Pagebundle makes what the page is served as, gateway/dashboard/bundle, of the modules and style sheets that
// people write, gateway/dashboard/page: make page runs it. A browser that asks for some 30 modules over six
// connections waits for them longer than for anything else (docs/adr/0092).
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	if err := run("gateway/dashboard"); err != nil {
		fmt.Fprintln(os.Stderr, "pagebundle:", err)
		os.Exit(1)
	}
}

// run replaces the bundle in dir with one of the page that is there now.
func run(dir string) error {
	files, err := bundle(filepath.Join(dir, "page"))
	if err != nil {
		return err
	}
	to := filepath.Join(dir, "bundle")
	had, err := read(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name := range had {
		if _, keep := files[name]; !keep {
			if err := os.Remove(filepath.Join(to, name)); err != nil { //nolint:forbidigo // a tool for this repository
				return err
			}
		}
	}
	for name, data := range files {
		if string(had[name]) == string(data) {
			continue
		}
		at := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:forbidigo,gosec // files of the repository
			return err
		}
		if err := os.WriteFile(at, data, 0o644); err != nil { //nolint:forbidigo,gosec // files of the repository
			return err
		}
	}
	return nil
}

// read returns the files below a folder, by their names there.
func read(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(at) //nolint:forbidigo,gosec // a tool for this repository
		return err
	})
	return files, err
}
