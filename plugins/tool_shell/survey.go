package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/kernel/tool"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// Bounds for digests. Files beyond them are identified by device, inode, size and times.
const (
	maxDigested = 64
	maxDigest   = 16 << 20 // bytes of a file
	maxBases    = 8        // folders in which relative names are looked up
)

// fact is a file or a program that commands use, with its identity.
type fact struct {
	path string // as shown: relative inside the workspace, otherwise absolute
	what string // a digest or an identity
	// the shown part:
	digest  string
	size    int64
	program bool
}

// survey finds the files and programs that commands use. It runs twice: before they are shown,
// and again when the commands have started and wait for their first line.
type survey struct {
	at      *place
	env     []string
	bases   []string // relative to the workspace, or absolute
	seen    map[string]bool
	facts   []fact
	digests int
}

// look surveys commands, the files that define what programs do (all of them, not only those of
// the named programs), and further files.
func look(ctx context.Context, at *place, env, commands []string, all bool, files []string) ([]fact, error) {
	s := &survey{at: at, env: env, bases: []string{at.rel}, seen: map[string]bool{}}
	runners := map[string]bool{}
	for _, c := range commands {
		for _, w := range words(c) {
			runners[path.Base(w)] = true
			for _, base := range slices.Clone(s.bases) {
				s.name(ctx, base, w)
			}
			s.search(w)
		}
	}
	for _, d := range workspace.Definers {
		if all || slices.ContainsFunc(d.Runners, func(r string) bool { return runners[r] }) {
			for _, base := range slices.Clone(s.bases) {
				s.define(ctx, base, d.Files)
			}
		}
	}
	for _, f := range files {
		s.file(ctx, f)
	}
	return s.facts, ctx.Err()
}

// name looks up a word, relative to one of the folders.
func (s *survey) name(ctx context.Context, base, word string) {
	if rest, ok := strings.CutPrefix(word, "~/"); ok {
		word = value(s.env, "HOME") + "/" + rest
	}
	if !path.IsAbs(word) {
		word = base + "/" + word // not joined: only the kernel resolves .. after a link
	}
	if rest, ok := strings.CutPrefix(path.Clean(word)+"/", path.Clean(s.at.root)+"/"); ok {
		word = path.Clean("./" + rest)
	}
	s.find(ctx, word, false)
}

// file adds a file that has to be listed even if it is gone.
func (s *survey) file(ctx context.Context, p string) {
	if !s.find(ctx, p, true) {
		s.facts = append(s.facts, fact{path: path.Clean(p), what: "gone"})
	}
}

// find adds a file and reports whether it is known. Unless only files are wanted, a folder
// becomes one of those in which names are looked up.
func (s *survey) find(ctx context.Context, p string, only bool) bool {
	inside := !path.IsAbs(p)
	var info fs.FileInfo
	var err error
	if inside {
		info, err = s.at.w.Root().Stat(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it leads outside, or cannot be examined
			inside, p = false, s.at.root+"/"+p
		}
	}
	if !inside {
		info, err = os.Stat(p)
	}
	if err != nil {
		return false
	}
	shown := path.Clean(p)
	if info.IsDir() {
		if !only && len(s.bases) < maxBases && !slices.Contains(s.bases, shown) && shown != "/" {
			s.bases = append(s.bases, shown)
		}
		return false
	}
	if !info.Mode().IsRegular() {
		return false
	}
	if s.seen[shown] {
		return true
	}
	s.seen[shown] = true
	f := fact{path: shown, what: identity(info), size: info.Size()}
	if inside && info.Size() <= maxDigest && s.digests < maxDigested && ctx.Err() == nil {
		if sum, err := s.digest(p); err == nil {
			s.digests++
			f.what, f.digest = sum, sum
		}
	}
	s.facts = append(s.facts, f)
	return true
}

func (s *survey) digest(p string) (string, error) {
	f, err := s.at.w.Root().OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fs.ErrInvalid, err)
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxDigest+1))
	if err != nil || n > maxDigest {
		return "", errors.Join(fs.ErrInvalid, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// search looks up a program by name, as sh does.
func (s *survey) search(word string) {
	if strings.ContainsRune(word, '/') || len(word) > 255 {
		return
	}
	for dir := range strings.SplitSeq(value(s.env, "PATH"), ":") {
		if !path.IsAbs(dir) {
			continue // already found by its name
		}
		p := path.Join(dir, word)
		info, err := os.Stat(p)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if key := "program " + word; !s.seen[key] {
			s.seen[key] = true
			s.facts = append(s.facts, fact{path: p, what: identity(info), program: true})
		}
		return
	}
}

// define looks for files with these names.
func (s *survey) define(ctx context.Context, base string, names []string) {
	for _, name := range names {
		suffix, pattern := strings.CutPrefix(name, "*")
		if !pattern {
			s.find(ctx, base+"/"+name, true)
			continue
		}
		for _, n := range s.ending(ctx, base, suffix) {
			s.find(ctx, base+"/"+n, true)
		}
	}
}

// ending lists the files of a folder whose names have a suffix.
func (s *survey) ending(ctx context.Context, dir, suffix string) []string {
	var f *os.File
	var err error
	if path.IsAbs(dir) {
		f, err = os.OpenFile(dir, os.O_RDONLY|hostfile.Directory, 0) //nolint:forbidigo,gosec // outside the workspace, where the command goes
	} else {
		f, err = s.at.w.Root().OpenFile(dir, os.O_RDONLY|hostfile.Directory|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var out []string
	for ctx.Err() == nil {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), suffix) {
				out = append(out, e.Name())
			}
		}
		if err != nil {
			break // its end
		}
	}
	slices.Sort(out)
	return out
}

func value(env []string, name string) (v string) {
	for _, kv := range env {
		if rest, ok := strings.CutPrefix(kv, name+"="); ok {
			v = rest
		}
	}
	return v
}

// shownFile is a file as a question shows it.
type shownFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"` // its beginning
	Size   int64  `json:"size,omitempty"`   // for a file that is identified without a digest
	Gone   bool   `json:"gone,omitempty"`
}

func (f fact) shown() shownFile {
	out := shownFile{Path: f.path, Gone: f.what == "gone"}
	if out.SHA256 = f.digest[:min(24, len(f.digest))]; out.SHA256 == "" {
		out.Size = f.size
	}
	return out
}

// usual are the folders of the system's own programs, which are not shown.
var usual = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}

// show splits facts into the shown parts: files, the number of further ones, and programs from
// unusual folders.
func show(facts []fact) (files []shownFile, more int, programs []string) {
	for _, f := range facts {
		switch {
		case f.program && !slices.Contains(usual, path.Dir(f.path)):
			programs = append(programs, f.path)
		case f.program:
		case len(files) < maxDigested:
			files = append(files, f.shown())
		default:
			more++
		}
	}
	return files, more, programs
}

// differ names the first difference between the shown facts and the current ones.
func differ(was, is []fact) error {
	index := func(facts []fact) map[string]fact {
		m := make(map[string]fact, len(facts))
		for _, f := range facts {
			m[f.path] = f
		}
		return m
	}
	old, now := index(was), index(is)
	for _, f := range was {
		switch n, ok := now[f.path]; {
		case !ok && f.program:
			return changed("the program " + f.path + " is no longer the one that its name finds")
		case !ok || n.what == "gone" && f.what != "gone":
			return changed(f.path + " is gone")
		case n.what != f.what:
			return changed(f.path + " changed")
		}
	}
	for _, f := range is {
		if _, ok := old[f.path]; !ok {
			return changed(f.path + " appeared")
		}
	}
	return nil
}

// changed returns the error for a call that differs from the shown one.
func changed(what string) error {
	return &tool.Failure{Kind: tool.ErrRejected, Err: fmt.Errorf("%.300s since it was shown: ask again", what)}
}

// same reports whether a path still leads to an open file.
func same(p string, f fs.FileInfo) bool {
	info, err := os.Stat(filepath.FromSlash(p))
	return err == nil && os.SameFile(info, f)
}
