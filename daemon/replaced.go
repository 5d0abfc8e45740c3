package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// protected lists the places that sandboxes protect from changes, of the files that yaya takes over
// again while it runs: the configuration folder, the folders where its links lead, and files
// that lie elsewhere. A mount in the sandbox protects each, and ends when somebody outside
// puts another one in its place: what that holds then may be any program's.
type protected struct {
	outside ownFiles
	places  []guarded
}

type guarded struct {
	name string // without links
	info fs.FileInfo
}

// protect notes what protects the files at present.
func (o ownFiles) protect(files []string) protected {
	p := protected{outside: o}
	for _, file := range append(slices.Clone(files), filepath.Join(o.paths.Config, "new")) { // the folder, even if all files in it are links
		if x, err := o.protects(file); err == nil {
			p.places = append(p.places, x)
		}
	}
	return p
}

// protects returns the place that sandboxes protect, of a file.
func (o ownFiles) protects(file string) (guarded, error) {
	name := sandbox.Real(file)
	switch dir := filepath.Dir(name); {
	case o.within(dir):
		name = sandbox.Real(o.paths.Config)
	case slices.Contains(o.beside(), dir):
		name = dir
	}
	info, err := os.Stat(name)
	return guarded{name, info}, err
}

// check refuses a file in a place that has not been protected since yaya started. It is
// called between the reading of the file and its use.
func (p protected) check(file string) error {
	now, err := p.outside.protects(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is taken over
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.places, func(x guarded) bool { return x.name == now.name && os.SameFile(x.info, now.info) }) {
		return nil
	}
	return fmt.Errorf("%s was replaced while yaya runs, or %s leads there only now: programs in sandboxes may have changed it. Check what it says, and restart yaya", now.name, file)
}
