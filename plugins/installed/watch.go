package installed

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/plugins/fetch"
)

// Watch notices changes of a folder's files. It is for one goroutine.
type Watch struct {
	folder     string
	seen, next string
}

// NewWatch notices changes from now on.
func NewWatch(folder string) *Watch {
	w := &Watch{folder: folder}
	w.seen = w.stamps()
	w.next = w.seen
	return w
}

// Changed reports, once, that files have changed and are at rest since the last call.
func (w *Watch) Changed() bool {
	now := w.stamps()
	rests := now == w.next
	w.next = now
	if !rests || now == w.seen {
		return false
	}
	w.seen = now
	return true
}

// stamps has the name, size, time and kind of everything in the folder but folders. A plugin that is
// installed has no links and other special files; one that is edited may, such as those of npm.
func (w *Watch) stamps() string {
	root, err := os.OpenRoot(w.folder)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = root.Close() }()
	var b strings.Builder
	seen := 0
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > fetch.MaxEntries {
			return fs.SkipAll
		}
		var info fs.FileInfo
		if err == nil && !d.IsDir() {
			info, err = d.Info()
		}
		switch {
		case err != nil: // it is one of the stamps
			fmt.Fprintf(&b, "%s %v\n", name, err)
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case !d.IsDir():
			fmt.Fprintf(&b, "%s %d %d %v\n", name, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return nil
	})
	return b.String()
}
