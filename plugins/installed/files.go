package installed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/worded"
)

// The record of the files of a plugin, beside its lock. The digest in the lock decides; the record
// says to a person which files have changed.
const (
	filesFile = "files.json"
	maxFiles  = 4 << 20 // bytes of the record; a larger one is not kept
	maxShown  = 50      // files of each list that are named
)

// files are the files of a plugin: their names, and what a change of them changes.
type files struct {
	Digest string            `json:"digest"` // of all
	Each   map[string]string `json:"files"`
}

// note notes a file that was read.
func (f *files) note(name string, executable bool, sum []byte) {
	mark := fmt.Sprintf("%x", sum[:16])
	if executable {
		mark += " executable"
	}
	f.Each[strings.ToValidUTF8(name, "\ufffd")] = mark // as JSON has it
}

// record keeps the record of a plugin. One that is too large is left out, and the earlier one says
// by its digest that it is of other files.
func (s *Store) record(name string, f *files) error {
	raw, err := json.Marshal(f)
	if err != nil || len(raw) > maxFiles {
		return err
	}
	root, err := s.data.OpenRoot(s.at(name))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	_, err = atomicfile.Write(root, filesFile, raw)
	return err
}

// recorded returns the record of the files with a digest, nil without one.
func (s *Store) recorded(name, digest string) (*files, error) {
	at := path.Join(s.at(name), filesFile)
	info, err := s.data.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // none was kept
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFiles {
		return nil, fmt.Errorf("%s is not a file of at most %d MiB", at, maxFiles>>20)
	}
	raw, err := s.data.ReadFile(at)
	if err != nil {
		return nil, err
	}
	var f files
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", at, err)
	}
	if f.Digest != digest {
		return nil, nil //nolint:nilnil // it is of other files
	}
	return &f, nil
}

// changes says which of the present files of a plugin are not those that were installed, in words.
func (s *Store) changes(e Entry, now contents) ([]string, error) {
	was, err := s.recorded(e.Name, e.Digest)
	switch {
	case err != nil:
		return nil, fmt.Errorf("plugin %s: %w", e.Name, err)
	case now.digest == e.Digest:
		return []string{"none: its files are those that were installed"}, nil
	case was == nil:
		return []string{"some of its files: which ones was not recorded when it was installed"}, nil
	}
	var changed, added, removed []string
	for _, file := range slices.Sorted(maps.Keys(now.files.Each)) {
		switch mark, had := was.Each[file]; {
		case !had:
			added = append(added, file)
		case mark != now.files.Each[file]:
			changed = append(changed, file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(was.Each)) {
		if _, has := now.files.Each[file]; !has {
			removed = append(removed, file)
		}
	}
	return slices.Concat(named("changed", changed), named("added", added), named("removed", removed)), nil
}

// named names files, a bounded number of them.
func named(what string, all []string) (out []string) {
	for _, file := range all[:min(len(all), maxShown)] {
		out = append(out, what+": "+file)
	}
	if more := len(all) - maxShown; more > 0 {
		out = append(out, what+": "+worded.Count(more, "more file", "more files"))
	}
	return out
}
