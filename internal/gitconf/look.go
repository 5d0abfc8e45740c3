package gitconf

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// State is the configuration of Git in a folder at one time.
type State struct {
	root  string
	at    time.Time
	files map[string]identity // by path
	bare  map[string]bool     // folders that are a repository without a .git
	shut  map[string]bool     // folders that cannot be looked into
	// folders are the examined ones, so that the next look reads only those that
	// changed.
	folders map[string]folder
	cut     bool

	own                 []string
	holders             []string // that are there
	part                bool     // own lacks something of what is in holders
	repositories, named map[string]bool
	modules             int
}

// folder holds the relevant facts about a folder.
type folder struct {
	is    identity
	git   []string // names of .git; one, but for file systems that tell capitals apart
	bare  bool
	subs  []string
	size  int
	fresh bool // changed so recently that another change may leave no trace
	part  bool // it has more
}

// limits bound how much is looked at.
type limits struct {
	entries int
	time    time.Duration
	settled time.Duration // the time after which a change of a folder is seen for sure
}

var bounds = limits{100_000, 500 * time.Millisecond, 2 * time.Second}

// Look records the configuration of Git in a folder, and in repositories below it. It
// does not read folders again that are unchanged since known, which may be nil.
func Look(dir string, known *State) *State { return look(dir, known, bounds) }

func look(dir string, known *State, l limits) *State {
	s := newState(dir)
	s.repository(filepath.Join(s.root, ".git"), s.root)
	s.see(filepath.Join(s.root, ".gitmodules"))
	left := l.entries
	for queue := []string{s.root}; len(queue) > 0; queue = queue[1:] {
		if left <= 0 || time.Since(s.at) > l.time {
			s.cut = true
			break
		}
		dir := queue[0]
		f, ok := s.through(dir, known, left, l.settled)
		if !ok {
			continue
		}
		left -= f.size + 1
		s.folders[dir] = f
		for _, name := range f.git {
			s.repository(filepath.Join(dir, name), dir)
		}
		if f.bare && !s.repositories[dir] {
			s.bare[dir] = true
			s.see(dir)
			s.folder(dir, dir)
		}
		for _, sub := range f.subs {
			queue = append(queue, filepath.Join(dir, sub))
		}
	}
	return s
}

// through examines a folder, unless it is unchanged.
func (s *State) through(dir string, known *State, most int, settled time.Duration) (folder, bool) {
	stat := os.Lstat
	if dir == s.root {
		stat = os.Stat
	}
	info, err := stat(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.refused(dir)
	}
	if err != nil || !info.IsDir() {
		return folder{}, false
	}
	is := identify(info)
	if known != nil {
		if was, ok := known.folders[dir]; ok && !was.fresh && !was.part && was.is == is {
			return was, true
		}
	}
	f := folder{is: is, fresh: s.at.Sub(time.Unix(0, is.changed)) < settled}
	all, whole, err := entries(dir, most)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.refused(dir)
		f.part = true
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			f.git = append(f.git, ".git")
		}
	}
	if !whole {
		s.cut, f.part = true, true
	}
	f.size = len(all)
	marks := 0
	for _, e := range all {
		switch name := e.Name(); {
		case strings.EqualFold(name, ".git"):
			f.git = append(f.git, name)
		case e.IsDir():
			f.subs = append(f.subs, name)
			if name == "objects" || name == "refs" {
				marks++
			}
		case name == "HEAD":
			marks++
		}
	}
	f.bare = marks == 3
	return f, true
}

// Change is a new or changed file that configures Git.
type Change struct {
	Path string // from the folder
	How  string // continues the path in a sentence
}

// Since returns the new and changed files since before. A new folder stands for
// everything in it.
func (s *State) Since(before *State) (changes []Change) {
	told := ""
	for _, path := range slices.SortedFunc(maps.Keys(s.files), func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	}) {
		was, there := before.files[path]
		if there && was.same(s.files[path]) && s.bare[path] == before.bare[path] && s.shut[path] == before.shut[path] || told != "" && strings.HasPrefix(path, told+"/") {
			continue
		}
		told = path
		name, err := filepath.Rel(s.root, path)
		if err != nil {
			name = path
		}
		how := "was not there before the command, and is now"
		switch {
		case s.shut[path] && !before.shut[path]:
			how = "cannot be looked into since the command"
		case there && before.shut[path]:
			how = "could not be looked into before the command"
		case there:
			how = "changed while the command ran"
		case s.bare[path]:
			how = "became a repository while the command ran (it has HEAD, objects and refs)"
		case !before.knows(path):
			how = "was not seen before the command, and is there now"
		}
		changes = append(changes, Change{name, how})
	}
	return changes
}

// knows reports whether the look would have seen a path if it had existed.
func (s *State) knows(path string) bool {
	if !s.cut {
		return true
	}
	for dir := filepath.Dir(path); s.inside(dir); dir = filepath.Dir(dir) {
		if f, ok := s.folders[dir]; ok {
			rest, _ := filepath.Rel(dir, path)
			name, _, _ := strings.Cut(rest, "/")
			return !f.part && !slices.Contains(f.subs, name)
		}
		if dir == "/" {
			break
		}
	}
	return false
}

// Dir returns the folder.
func (s *State) Dir() string { return s.root }

// Cut reports whether the look was incomplete.
func (s *State) Cut() bool { return s.cut }
