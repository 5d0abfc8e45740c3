package agentskill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Bounds of folders of skills.
const (
	// MaxSkills is how many folders are looked at in one folder of skills.
	MaxSkills = 500

	maxNames     = 50_000 // entries that are listed
	maxFiles     = 200    // files of a skill that are named
	maxVisited   = 5_000  // entries of a skill that are visited
	maxDepth     = 8
	maxCached    = 4_000
	settlesAfter = 2 * time.Second
)

// ProjectFolders are the folders of skills in a project, the first counts most.
var ProjectFolders = []string{".yaya/skills", ".agents/skills", ".claude/skills"}

// Folder is an open folder that somebody works in.
type Folder struct {
	Root *os.Root
	Dir  string // its absolute path
	// Check returns why a file may not be read; nil allows all.
	Check func(*os.File, fs.FileInfo) error
}

// Found is a skill in its folder. One of a project can be read as long as its [Folder] is open.
type Found struct {
	Skill
	Dir     string `json:"dir"`     // absolute
	Project bool   `json:"project"` // of the folder that somebody works in
	// ShadowedBy is the folder of the skill that counts instead of this one, since both have
	// the same name.
	ShadowedBy string `json:"shadowed_by,omitempty"`

	at    place
	entry string
}

// Broken is a folder that would be a skill, but for the reason, or one of skills that is not
// read as a whole.
type Broken struct {
	Dir     string `json:"dir"`
	Project bool   `json:"project"`
	Reason  string `json:"reason"`
}

// Set holds the result of a look: the skills, in the order of their names, those that count
// first; and the broken ones.
type Set struct {
	Skills []Found
	Broken []Broken
}

// Counting are the skills that no other shadows.
func (s Set) Counting() []Found {
	return slices.DeleteFunc(slices.Clone(s.Skills), func(f Found) bool { return f.ShadowedBy != "" })
}

// Find returns the skill that counts under a name.
func (s Set) Find(name string) (Found, bool) {
	i := slices.IndexFunc(s.Skills, func(f Found) bool { return f.Name == name && f.ShadowedBy == "" })
	if i < 0 {
		return Found{}, false
	}
	return s.Skills[i], true
}

// Library finds skills, and remembers the front matter of files that have not changed. It is
// safe for concurrent use.
type Library struct {
	user []string
	more func() []string

	mu    sync.Mutex
	cache map[seen]parsed
}

// seen is a file with all that changes with its content.
type seen struct {
	path    string
	version hostfile.Version
}

type parsed struct {
	skill Skill
	err   error
}

// NewLibrary returns a library of the user's folders of skills; the first counts most.
func NewLibrary(user ...string) *Library { return &Library{user: user} }

// Also has folders of skills looked at after the user's, such as those of packages. It is called
// before the library is used.
func (l *Library) Also(more func() []string) { l.more = more }

// Look finds the skills of a folder, if there is one, and of the user. A project's skill counts
// instead of the user's of the same name.
func (l *Library) Look(in *Folder) Set {
	var s Set
	if in != nil {
		for _, rel := range ProjectFolders {
			l.look(&s, place{dir: filepath.Join(in.Dir, filepath.FromSlash(rel)), project: true, check: in.Check, open: func(name string) (*os.Root, error) {
				return in.Root.OpenRoot(path.Join(rel, name) + "/.") // a pipe is not waited for
			}})
		}
	}
	user := l.user
	if l.more != nil {
		user = slices.Concat(user, l.more())
	}
	for _, dir := range user {
		l.look(&s, userPlace(dir))
	}
	shadow(s.Skills)
	return s
}

// LookAt finds the skills of one folder of skills, or the one skill that the folder is.
func (l *Library) LookAt(dir string) (Set, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Set{}, err
	}
	if info, err := os.Stat(dir); err != nil {
		return Set{}, err
	} else if !info.IsDir() {
		return Set{}, fmt.Errorf("%s is not a folder", dir)
	}
	var s Set
	if _, err := os.Lstat(filepath.Join(dir, FileName)); err == nil {
		l.read(&s, userPlace(filepath.Dir(dir)), filepath.Base(dir))
	} else {
		l.look(&s, userPlace(dir))
	}
	shadow(s.Skills)
	return s, nil
}

// shadow sorts skills by name and marks those that others count instead of.
func shadow(skills []Found) {
	slices.SortStableFunc(skills, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(skills); i++ {
		if first := skills[i-1]; first.Name == skills[i].Name {
			skills[i].ShadowedBy = first.Dir
			if first.ShadowedBy != "" {
				skills[i].ShadowedBy = first.ShadowedBy
			}
		}
	}
}

// place is a folder of skills.
type place struct {
	dir     string
	project bool
	check   func(*os.File, fs.FileInfo) error
	open    func(name string) (*os.Root, error) // the folder of a skill; "." is the place itself
}

// userPlace is a folder of the user, who may put links to skills into it.
func userPlace(dir string) place {
	return place{dir: dir, open: func(name string) (*os.Root, error) { return os.OpenRoot(filepath.Join(dir, name) + "/.") }}
}

// look reads a folder of skills; one that is not there has none.
func (l *Library) look(s *Set, at place) {
	names, err := at.names()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.Broken = append(s.Broken, Broken{at.dir, at.project, reason(err)})
		}
		return
	}
	if len(names) > MaxSkills {
		s.Broken = append(s.Broken, Broken{at.dir, at.project, fmt.Sprintf("it has %d folders: only the first %d in the order of their names are read", len(names), MaxSkills)})
		names = names[:MaxSkills]
	}
	for _, name := range names {
		l.read(s, at, name)
	}
}

// names lists what can be a skill, in order.
func (p place) names() ([]string, error) {
	root, err := p.open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxNames {
		return nil, fmt.Errorf("it has more than %d entries: none is read", maxNames)
	}
	var out []string
	for _, e := range entries {
		if name := e.Name(); (e.IsDir() || e.Type()&fs.ModeSymlink != 0) && !strings.HasPrefix(name, ".") && name != "node_modules" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// read reads the front matter of one skill. A folder without SKILL.md is not a skill.
func (l *Library) read(s *Set, at place, name string) {
	f := Found{Dir: filepath.Join(at.dir, name), Project: at.project, at: at, entry: name}
	skill, err := l.skill(f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.Broken = append(s.Broken, Broken{f.Dir, at.project, reason(err)})
	default:
		f.Skill = skill
		s.Skills = append(s.Skills, f)
	}
}

func (l *Library) skill(f Found) (Skill, error) {
	root, err := f.at.open(f.entry)
	if errors.Is(err, syscall.ENOTDIR) {
		return Skill{}, fs.ErrNotExist // a link to a file, beside the skills
	}
	if err != nil {
		return Skill{}, err
	}
	defer func() { _ = root.Close() }()
	file, info, err := f.at.file(root, FileName)
	if err != nil {
		return Skill{}, err
	}
	defer func() { _ = file.Close() }()
	version, err := hostfile.VersionOf(file)
	if err != nil {
		return Skill{}, err
	}
	key := seen{filepath.Join(f.Dir, FileName), version}
	l.mu.Lock()
	was, known := l.cache[key]
	l.mu.Unlock()
	if known {
		return was.skill, was.err
	}
	data, err := whole(file)
	if err != nil {
		return Skill{}, err
	}
	now := parsed{}
	now.skill, _, now.err = Parse(data, f.entry)
	// A file that changes twice within the resolution of its time looks unchanged.
	if time.Since(info.ModTime()) > settlesAfter {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cache == nil || len(l.cache) >= maxCached {
			l.cache = map[seen]parsed{}
		}
		l.cache[key] = now
	}
	return now.skill, now.err
}

// file opens a regular file of a skill.
func (p place) file(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", shown(name))
	case info.Size() > MaxFile:
		err = fmt.Errorf("%s has more than %d bytes", shown(name), MaxFile)
	case p.check != nil:
		err = p.check(f, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func whole(f *os.File) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1)) //nolint:forbidigo // bounded by the reader
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("the file has more than %d bytes", MaxFile)
	}
	return data, err
}

// reason is an error in words that name no path twice.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		if strings.Contains(p.Err.Error(), "escapes") {
			return shown(strings.TrimSuffix(p.Path, "/.")) + " is a link that leads out of the folder"
		}
		return shown(strings.TrimSuffix(p.Path, "/.")) + ": " + p.Err.Error()
	}
	return err.Error()
}
