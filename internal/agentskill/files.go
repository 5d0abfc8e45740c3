package agentskill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/worded"
)

// Body returns the instructions of the skill: its SKILL.md without the front matter.
func (f Found) Body() (string, error) {
	data, err := f.read(FileName)
	if err != nil {
		return "", err
	}
	_, body, err := Parse(data, f.entry)
	return body, err
}

// Text returns a file of the skill, which must be text. name is relative to the skill's
// folder.
func (f Found) Text(name string) (string, error) {
	clean := path.Clean(filepath.ToSlash(name))
	if strings.ContainsRune(name, 0) || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", fmt.Errorf("%s is not a path inside the skill's folder", shown(name))
	}
	data, err := f.read(filepath.FromSlash(clean))
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", fmt.Errorf("%s is not text in UTF-8", shown(name))
	}
	return string(data), nil
}

func (f Found) read(name string) ([]byte, error) {
	root, err := f.at.open(f.entry)
	if err != nil {
		return nil, worded.Error(err, "%s", reason(err))
	}
	defer func() { _ = root.Close() }()
	file, _, err := f.at.file(root, name)
	if err != nil {
		return nil, worded.Error(err, "%s", reason(err))
	}
	defer func() { _ = file.Close() }()
	return whole(file)
}

// Files lists the files of the skill but SKILL.md, in order, and reports if there are more.
// Links and hidden files are left out.
func (f Found) Files() (names []string, more bool, err error) {
	root, err := f.at.open(f.entry)
	if err != nil {
		return nil, false, worded.Error(err, "%s", reason(err))
	}
	defer func() { _ = root.Close() }()
	visited := 0
	err = fs.WalkDir(root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		switch visited++; {
		case err != nil:
			if at == "." {
				return err
			}
			return nil // an unreadable folder is left out
		case at == ".":
			return nil
		case visited > maxVisited || len(names) == maxFiles:
			more = true
			return fs.SkipAll
		case strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules":
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && strings.Count(at, "/") >= maxDepth:
			more = true
			return fs.SkipDir
		case d.Type().IsRegular() && at != FileName:
			names = append(names, at)
		}
		return nil
	})
	return names, more, err
}

// Bounds of a skill that is copied.
const (
	maxCopied      = 2_000 // files and folders
	maxCopiedBytes = 64 << 20
)

// CopyTo copies the skill's folder to dir, which must not be there. Nothing is copied if the
// folder has a link, or anything else that is not a file or a folder, or is too large.
func (f Found) CopyTo(dir string) (err error) {
	root, err := f.at.open(f.entry)
	if err != nil {
		return worded.Error(err, "%s", reason(err))
	}
	defer func() { _ = root.Close() }()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:forbidigo,gosec // the user's own folder, which other agents read, too
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	name := filepath.Base(dir)
	if _, err := parent.Lstat(name); err == nil {
		return fmt.Errorf("%s is there already", dir)
	}
	partial := fmt.Sprintf(".%s.%d", name, os.Getpid())
	if err := parent.Mkdir(partial, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, parent.RemoveAll(partial))
		}
	}()
	to, err := parent.OpenRoot(partial)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	if err := f.copyInto(root, to); err != nil {
		return err
	}
	return parent.Rename(partial, name)
}

func (f Found) copyInto(from, to *os.Root) error {
	count, left := 0, int64(maxCopiedBytes)
	return fs.WalkDir(from.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == "." {
			return err
		}
		if count++; count > maxCopied {
			return fmt.Errorf("the skill has more than %d files", maxCopied)
		}
		switch {
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return to.Mkdir(at, 0o755)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", shown(at))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if left -= info.Size(); left < 0 {
			return fmt.Errorf("the skill has more than %d bytes", maxCopiedBytes)
		}
		data, err := fs.ReadFile(from.FS(), at) // bounded by the check above, unless it grows meanwhile
		if err != nil {
			return err
		}
		return to.WriteFile(at, data, info.Mode().Perm()&0o755|0o600)
	})
}

// Template is the SKILL.md of a new skill.
func Template(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %q\n---\n\n# %s\n\nWrite here what the agent has to know and do, step by step.\n", name, description, name)
}
