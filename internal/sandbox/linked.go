package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// Bounds of the look for links in folders of credentials, which each start of a sandbox
// takes. docs/SANDBOX.md says what lies beyond them.
const (
	linkedDepth   = 3    // folders, the one of credentials included
	linkedEntries = 1000 // of one folder of credentials, with those below it
	linkedTargets = 256  // of all
)

// appFolders are folders of credentials in which snap and Flatpak put links to the folders
// of the user, such as Documents: those hold no credentials.
var appFolders = []string{"snap/firefox", "snap/chromium", ".var/app"}

// notLinked are folders whose files are not hidden because a link leads to them: everybody
// reads the programs and settings of the system, and a sandbox has the others of its own.
var notLinked = slices.Concat(ofSystem[runtime.GOOS], []string{"/Applications", "/boot", "/dev", "/proc", "/run", "/sys"})

// linkedCredentials returns where symbolic links in folders of credentials lead. Managers of
// settings (GNU Stow) keep the files elsewhere, and a program reads them there by their own
// paths. Where nothing is mounted it reads them even by the link: Landlock looks at the file.
// named reports whether a folder, or a link in one, is shown because a policy names it.
func linkedCredentials(home string, folders []string, named func(name string) bool) (targets []string) {
	var tops []string
	for _, name := range folders {
		isApp := func(dir string) bool {
			return slices.ContainsFunc(appFolders, func(app string) bool { return name == filepath.Join(dir, app) })
		}
		if info, err := os.Stat(name); err == nil && info.IsDir() && !slices.ContainsFunc(homes(home), isApp) {
			if to := real(name); !slices.Contains(tops, to) {
				tops = append(tops, to)
			}
		}
	}
	for _, top := range tops {
		left := linkedEntries
		level := []string{top}
		for depth := 0; depth < linkedDepth; depth++ {
			var next []string
			for _, dir := range level {
				for _, e := range entriesOf(dir, &left) {
					name := filepath.Join(dir, e.Name())
					switch {
					case named(name):
					case e.IsDir():
						next = append(next, name)
					case e.Type()&fs.ModeSymlink != 0:
						to, isFolder := linkedTo(home, name)
						if to == "" || Within(tops, to) || slices.Contains(targets, to) {
							continue
						}
						if len(targets) == linkedTargets {
							return targets
						}
						if targets = append(targets, to); isFolder {
							next = append(next, to)
						}
					}
				}
			}
			level = next
		}
	}
	return targets
}

// entriesOf returns what is in a folder, as far as the bound that is left allows.
func entriesOf(dir string, left *int) []fs.DirEntry {
	if *left <= 0 {
		return nil // ReadDir(0) would return all
	}
	f, err := os.Open(dir) //nolint:forbidigo,gosec // a folder of credentials, whose names are read
	if err != nil {
		return nil // who cannot read it here cannot read it inside
	}
	defer func() { _ = f.Close() }()
	entries, _ := f.ReadDir(*left) // what could be read
	*left -= len(entries)
	return entries
}

// linkedTo returns where a link leads, and whether that is a folder; "" if it is not to be
// hidden: it does not exist, everybody reads it, or to hide it would hide much else.
func linkedTo(home, link string) (to string, isFolder bool) {
	to, err := filepath.EvalSymlinks(link)
	if err != nil || filepath.Dir(to) == "/" || tooWide(home, to) {
		return "", false
	}
	if slices.ContainsFunc(notLinked, func(at string) bool { return inside.Covers(at, to) || inside.Covers(real(at), to) }) {
		return "", false
	}
	info, err := os.Stat(to)
	return to, err == nil && info.IsDir()
}

// shows reports whether the policy names a path, or what it lies in, within a folder that is
// hidden unless it is named.
func (r *Run) shows(folders []string) func(name string) bool {
	hidden := reals(folders)
	var named []string
	for _, p := range slices.Concat(r.policy.Read, r.policy.Write, r.policy.Partly) {
		if Within(hidden, p.name) {
			named = append(named, p.name)
		}
	}
	return func(name string) bool { return Within(named, name) }
}
