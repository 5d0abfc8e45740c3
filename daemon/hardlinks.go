package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// maxLinkedFiles bounds how many of yaya's own files are looked at for other names.
const maxLinkedFiles = 1000

// hardLinked are the files of the keys, the configuration and the top of the data directory, and
// those that are named, that have more than one name (a hard link). A sandbox hides a file by its
// path, and does not know a second one in another folder.
func (p Paths) hardLinked(named []string) (names []string) {
	look := func(name string) {
		info, err := os.Stat(name) // of a link the file
		if err != nil || !info.Mode().IsRegular() || slices.Contains(names, name) {
			return
		}
		if _, links, err := hostfile.Named(name); err == nil && links > 1 {
			names = append(names, name)
		}
	}
	left := maxLinkedFiles
	for _, dir := range []string{p.Config, p.Data, filepath.Join(p.Data, "keys")} {
		d, err := os.Open(dir) //nolint:forbidigo,gosec // its names alone
		if err != nil {
			continue // it is not there, or this is a sandbox of yaya's, which hides it
		}
		entries, _ := d.ReadDir(left) // of a folder that ends meanwhile, what there was
		_ = d.Close()
		left -= len(entries)
		for _, e := range entries {
			look(filepath.Join(dir, e.Name()))
		}
		if left <= 0 {
			break
		}
	}
	for _, name := range named {
		look(name)
	}
	return names
}

// linkedWarning says what hardLinked has found, "" for nothing.
func linkedWarning(names []string) string {
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > 1 {
		more = " (and of " + worded.Count(len(names)-1, "other file", "other files") + ")"
	}
	return fmt.Sprintf("%s has another name (a hard link)%s, by which a program in a sandbox may read and change it: find the names (find / -xdev -samefile %[1]s) and remove those that are not yaya's", names[0], more)
}

// linkedDiagnosis is that for the doctor, false without such a file.
func (st *stores) linkedDiagnosis() (plugin.Diagnosis, bool) {
	named, _ := st.outside.Now()
	w := linkedWarning(st.at.hardLinked(named))
	return plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: w}}, w != ""
}
