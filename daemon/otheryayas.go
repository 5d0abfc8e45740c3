package daemon

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// A user may have several yayas, each with a data directory of its own (--data-dir). A
// program in a sandbox of one must not read the keys of another. So each writes an entry
// with its folders to a list below the home folder, and the sandboxes of all hide what the
// list names, and the list.

// Bounds of the list.
const (
	maxEntries   = 256
	maxEntrySize = 64 << 10
)

// entry is a yaya's entry about itself: its folders, or files outside them that it runs by.
type entry struct {
	Data     string   `json:"data"`
	Hidden   []string `json:"hidden"`             // its folders, Data among them, or files
	Readable []string `json:"readable,omitempty"` // that no sandbox changes
}

// listDir is the folder of the list, a file for each entry. It is the same for each environment
// but HOME.
func (p Paths) listDir() string {
	if p.Home == "" {
		return ""
	}
	return filepath.Join(p.Home, usualState, "yaya-folders")
}

// usual are the folders of a yaya without flags, and that of the list. They are hidden
// although no yaya may use them now: who makes them configures the next one.
func (p Paths) usual() []string {
	if p.Home == "" {
		return nil
	}
	var all []string
	for _, dir := range []string{
		filepath.Join(p.Home, usualState, "yaya"), filepath.Join(p.Home, usualConfig, "yaya"),
		filepath.Join(userFolder("XDG_STATE_HOME", p.Home, usualState), "yaya"), filepath.Join(userFolder("XDG_CONFIG_HOME", p.Home, usualConfig), "yaya"),
		p.listDir(),
	} {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}

// enlist writes down the folders of this yaya, unless each sandbox hides them anyway.
func (p Paths) enlist() error {
	if p.Home == "" || p.readOnly {
		return nil
	}
	hidden := Hidden(p.Own())
	usual := p.usual()
	if !slices.ContainsFunc(hidden, func(name string) bool {
		return !slices.ContainsFunc(usual, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
	}) {
		return nil
	}
	return p.write("", func(entry) entry { return entry{Data: p.Data, Hidden: hidden} })
}

// entryName is the name of an entry of this yaya: that of its folders, or another one by its
// suffix.
func (p Paths) entryName(suffix string) string {
	sum := sha256.Sum256([]byte(p.Data))
	return fmt.Sprintf("%x%s.json", sum[:8], suffix)
}

// unlist removes an entry of this yaya.
func (p Paths) unlist(suffix string) error {
	err := os.Remove(filepath.Join(p.listDir(), p.entryName(suffix))) //nolint:forbidigo // yaya's own
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write changes an entry of this yaya.
func (p Paths) write(suffix string, change func(have entry) entry) error {
	if err := os.MkdirAll(p.listDir(), 0o700); err != nil { //nolint:forbidigo // a folder of the user's, named by yaya
		return err
	}
	root, err := os.OpenRoot(p.listDir())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	name := p.entryName(suffix)
	raw, err := readEntry(root, name)
	var have entry
	if err != nil || json.Unmarshal(raw, &have) != nil { // it is not there, or is to be replaced
		raw, have = nil, entry{Data: p.Data}
	}
	data, err := json.Marshal(change(have))
	if err != nil || bytes.Equal(raw, data) {
		return err
	}
	if err := dropEntries(root); err != nil {
		return err
	}
	_, err = atomicfile.Write(root, name, data)
	return err
}

// enlist writes down the files outside the folders of this yaya. The daemon of a data directory
// replaces what is written; another command, which may run beside it, adds its own.
func (o ownFiles) enlist(daemon bool) error {
	if o.paths.Home == "" || o.paths.readOnly {
		return nil
	}
	hidden, readable := o.Now()
	if len(hidden)+len(readable) == 0 {
		if !daemon {
			return nil
		}
		return o.paths.unlist("-files")
	}
	return o.paths.write("-files", func(have entry) entry {
		if !daemon {
			hidden, readable = union(have.Hidden, hidden), union(have.Readable, readable)
		}
		return entry{o.paths.Data, hidden, readable}
	})
}

// union are the paths of both that exist.
func union(a, b []string) (out []string) {
	for _, name := range slices.Concat(a, b) {
		if !slices.Contains(out, name) && !Missing(name) {
			out = append(out, name)
		}
	}
	return out
}

// errNotOurs says that an entry is another user's, such as one of root after sudo. The
// folders in it are that user's, too, and closed to this one.
var errNotOurs = errors.New("another user's entry")

// reads reports whether a user follows an entry of another one.
func reads(user, owner int) bool { return user == owner || user == 0 }

// readEntry reads a file of the list. Root reads those of all users.
func readEntry(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if owner, known := hostfile.Owner(info); known && !reads(os.Geteuid(), owner) {
		return nil, errNotOurs
	}
	data, err := readPlain(root, name, maxEntrySize+1)
	if err == nil && len(data) > maxEntrySize {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxEntrySize)
	}
	return data, err
}

// dropEntries removes the entries of data directories that are gone.
func dropEntries(root *os.Root) error {
	return eachEntry(root, func(name string, n entry) error {
		if _, err := os.Lstat(n.Data); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // another yaya may have
			return err
		}
		return nil
	})
}

// eachEntry calls do with each entry.
func eachEntry(root *os.Root, do func(file string, n entry) error) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(names) > maxEntries {
		return fmt.Errorf("%s has more than %d files: remove those of data directories that are no longer used", root.Name(), maxEntries)
	}
	for _, name := range names {
		if filepath.Ext(name) != ".json" { // one is being written
			continue
		}
		data, err := readEntry(root, name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotOurs) { // removed meanwhile, or nothing of ours
			continue
		}
		var n entry
		if err == nil {
			err = json.Unmarshal(data, &n)
		}
		if err != nil {
			return fmt.Errorf("%s: %w (remove that file, and start its yaya again)", filepath.Join(root.Name(), name), err)
		}
		if err := do(name, n); err != nil {
			return err
		}
	}
	return nil
}

// enlisted are the folders and files of all yayas of this user that exist.
func (p Paths) enlisted() (hidden, readable []string, err error) {
	if p.Home == "" {
		return nil, nil, nil
	}
	root, err := os.OpenRoot(p.listDir())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // no other yaya, or a sandbox of yaya's, which hides them
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	err = eachEntry(root, func(_ string, n entry) error {
		hidden, readable = union(hidden, absolute(n.Hidden)), union(readable, absolute(n.Readable))
		return nil
	})
	return hidden, readable, err
}

func absolute(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !filepath.IsAbs(name) || name == "/" })
}
