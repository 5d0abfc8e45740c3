package installed

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/plugins/fetch"
)

// Unbuilt returns the program that has to be built before the plugin can run, "" if none has: a
// file that run names, and that a Go module does not have.
func (p *Package) Unbuilt() string {
	if p.Parts != nil {
		return ""
	}
	program := p.Description.Run[0]
	if !strings.Contains(program, "/") || !filepath.IsLocal(program) {
		return ""
	}
	root, err := os.OpenRoot(p.Folder)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	program = path.Clean(program)
	if info, err := root.Lstat("go.mod"); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if _, err := root.Lstat(program); err == nil {
		return ""
	}
	return program
}

// Build adds the program that has to be built to a copy of the files, whose digest the user has
// agreed to; from then on the package has both. build makes the program of the module in a folder,
// which it must not change, and returns its path.
func (p *Package) Build(build func(folder string) (program string, err error)) (err error) {
	name := p.Unbuilt()
	if name == "" {
		return nil
	}
	agreed := p.Digest
	dir, err := p.Temporary()
	if err != nil {
		return err
	}
	if err := copyInto(dir, p.Folder); err != nil {
		return err
	}
	p.Folder = dir
	if _, err := p.read(true, false); err != nil {
		return err
	}
	if p.Digest != agreed {
		return fmt.Errorf("the files of %s have changed since they were shown: their digest is %s, and %s was agreed to", p.Source, p.Digest, agreed)
	}
	program, err := build(dir)
	if err != nil {
		return fmt.Errorf("build %s: %w", p.Description.Name, err)
	}
	if err := putProgram(dir, name, program); err != nil {
		return fmt.Errorf("build %s: %w", p.Description.Name, err)
	}
	p.built = agreed
	_, err = p.read(true, false)
	return err
}

// Temporary makes a temporary folder that the package's Close removes.
func (p *Package) Temporary() (string, error) {
	made, err := os.MkdirTemp("", "yaya-plugin-")
	if err != nil {
		return "", err
	}
	was := p.remove
	p.remove = func() error {
		err := os.RemoveAll(made) //nolint:forbidigo // made here, with a name of its own
		if was != nil {
			err = errors.Join(err, was())
		}
		return err
	}
	return filepath.EvalSymlinks(made)
}

func copyInto(dir, folder string) error {
	from, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	return copyTree(from, to)
}

func putProgram(dir, name, program string) error {
	above, err := os.OpenRoot(filepath.Dir(program))
	if err != nil {
		return err
	}
	defer func() { _ = above.Close() }()
	in, err := open(above, filepath.Base(program))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Size() > fetch.MaxBytes {
		return fmt.Errorf("the program is larger than %d MiB", fetch.MaxBytes>>20)
	}
	to, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	return fetch.Put(to, name, in, true, info.Size())
}
