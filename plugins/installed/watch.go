package installed

import (
	"fmt"
	"os"
	"strings"
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

// stamps has the name, size and time of each file.
func (w *Watch) stamps() string {
	root, err := os.OpenRoot(w.folder)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = root.Close() }()
	files, err := list(root, true)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, f := range files {
		if f.mode.IsDir() {
			continue
		}
		fmt.Fprintf(&b, "%s %d %d %v\n", f.name, f.size, f.time.UnixNano(), f.mode)
	}
	return b.String()
}
