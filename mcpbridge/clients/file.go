package clients

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/userfile"
)

// installed reports whether a client without its file at least has its own folder.
func installed(home, path string) bool {
	dir := filepath.Dir(path)
	if dir == home {
		dir = strings.TrimSuffix(path, filepath.Ext(path)) // .claude next to .claude.json
	}
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}

// File is the file of a client, as it is.
type File struct {
	Client
	Path  string
	Data  []byte
	Found bool
}

// Named returns the client that people call so: by its id, or by its name.
func Named(all []Client, name string) (Client, bool) {
	i := slices.IndexFunc(all, func(c Client) bool { return c.ID == Word(name) || Word(c.Name) == Word(name) })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// Word is a name as people type it: "Copilot CLI" is copilot-cli.
func Word(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// Files reads the file of a client: the one that there is, all of them, or the one that
// the client would write.
func (c Client) Files(all bool) ([]File, error) {
	var out []File
	for _, path := range c.Paths {
		data, ok, err := userfile.Read(path)
		if err != nil {
			return nil, err
		}
		if ok && (len(out) == 0 || all || c.Each) {
			out = append(out, File{c, path, data, true})
		}
	}
	if len(out) == 0 {
		out = append(out, File{Client: c, Path: c.Paths[0]})
	}
	return out, nil
}

// State is how it stands with a file of a client.
type State struct {
	Path  string
	Found bool   // the file, or at least a folder of the client's
	Yaya  string // the command or the address of yaya's entry
	Other string // the command of another program that is called yaya there
	Err   error  // it cannot be read
}

// States looks at the files of a client that there are, or at the one that it would write.
func (c Client) States(home string) []State {
	var out []State
	for _, path := range c.Paths {
		data, ok, err := userfile.Read(path)
		if !ok && err == nil {
			continue
		}
		s := State{Path: path, Found: true, Err: err}
		if err == nil {
			s.look(c, data)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		out = append(out, State{Path: c.Paths[0], Found: installed(home, c.Paths[0])})
	}
	return out
}

// look reads the entry named yaya.
func (s *State) look(c Client, data []byte) {
	x, found, err := c.Entry(data)
	if err != nil || !found {
		s.Err = err
		return
	}
	foreign := c.Foreign(data)
	switch {
	case foreign == nil:
		s.Yaya = x.Endpoint()
	case x.Command != "":
		s.Other = x.Endpoint()
	default:
		s.Err = foreign
	}
}

// Change backs the file up and replaces it, unless it has been changed since it was read,
// and returns the path of the backup. A file that has nothing but yaya in it is removed.
func (f File) Change(ctx context.Context, e Edit) (backup string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	now, found, err := userfile.Read(f.Path)
	switch {
	case err != nil:
		return "", err
	case found != f.Found || string(now) != string(f.Data):
		return "", fmt.Errorf("%s has changed in the meantime; try again", f.Path)
	case !found:
		return "", atomicfile.Replace(f.Path, e.Data)
	case e.Gone:
		return "", atomicfile.Remove(f.Path)
	}
	if backup, err = backUp(f.Path, now); err != nil {
		return "", fmt.Errorf("a backup of %s: %w", f.Path, err)
	}
	return backup, atomicfile.Replace(f.Path, e.Data)
}

// Original returns the file's content from before yaya's entry was added, according to a
// backup; nil without one.
func (f File) Original() ([]byte, error) {
	all, err := backups(f.Path)
	for _, path := range slices.Backward(all) {
		data, _, err := userfile.Read(path)
		if err != nil {
			return nil, err
		}
		if _, in, err := f.Entry(data); err == nil && !in {
			return data, nil
		}
	}
	return nil, err
}
