package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// The files of a folder.
const (
	projectFile = ".yaya/hooks.toml"
	claudeFile  = ".claude/settings.json"
)

// Files are the files of a folder that can have hooks.
func Files(claude bool) []string {
	if claude {
		return []string{projectFile, claudeFile}
	}
	return []string{projectFile}
}

// Found holds the hooks in the files of one place.
type Found struct {
	Hooks []hookconf.Hook
	// Ignored are hooks of Claude Code that yaya does not run.
	Ignored []string
	// Err is why a file cannot be read. It has the name of the file, and closes what hooks
	// guard.
	Err error
}

func (f *Found) empty() bool { return f == nil || len(f.Hooks) == 0 && f.Err == nil }

func (f *Found) orNil() *Found {
	if f.empty() {
		return nil
	}
	return f
}

// and returns the hooks of two places.
func (f *Found) and(o *Found) Found {
	return Found{slices.Concat(f.Hooks, o.Hooks), slices.Concat(f.Ignored, o.Ignored), errors.Join(f.Err, o.Err)}
}

// Project reads the hooks of a folder, whether or not it is trusted.
func Project(w *workspace.Workspace, claude bool) (out Found) {
	read := func(name string) ([]byte, bool, error) {
		if _, err := w.Root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		data, _, err := w.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", filepath.Join(w.Dir(), name), err)
		}
		return data, true, nil
	}
	out.take(read, projectFile, filepath.Join(w.Dir(), projectFile), false)
	if claude {
		out.take(read, claudeFile, filepath.Join(w.Dir(), claudeFile), true)
	}
	return out
}

// User reads the hooks of the user: of yaya's own file, and of that of Claude Code unless its
// name is "".
func User(file, claude string) (out Found) {
	out.take(userfile.Read, file, file, false)
	if claude != "" {
		out.take(userfile.Read, claude, claude, true)
	}
	return out
}

func (f *Found) take(read func(string) ([]byte, bool, error), name, shown string, claude bool) {
	if name == "" {
		return
	}
	data, found, err := read(name)
	if err == nil && !found {
		return
	}
	var hooks []hookconf.Hook
	var ignored []string
	switch {
	case err != nil:
	case claude:
		hooks, ignored, err = hookconf.ParseClaude(data, shown)
	default:
		hooks, err = hookconf.Parse(data, shown)
	}
	f.Hooks, f.Ignored, f.Err = append(f.Hooks, hooks...), append(f.Ignored, ignored...), errors.Join(f.Err, err)
}

func (c *Config) userHooks() Found {
	claude := ""
	if c.Claude() {
		claude = c.UserClaude
	}
	return User(c.User, claude)
}
