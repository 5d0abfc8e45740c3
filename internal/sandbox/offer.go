package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
	"github.com/yaya-ai/yaya/internal/worded"
)

// Nearest returns a path itself if it exists, else the nearest existing folder
// above it.
func Nearest(name string) string {
	for name = filepath.Clean(name); name != "/"; name = filepath.Dir(name) {
		if _, err := os.Stat(name); err == nil {
			break
		}
	}
	return name
}

// Within reports whether a path is one of several, or lies in one. It follows no link.
func Within(all []string, path string) bool {
	return slices.ContainsFunc(all, func(top string) bool { return inside.Covers(top, path) })
}

// BelongsTo reports whether a path leads to one of several, or into one, whatever its links
// and the mounts of this moment.
func BelongsTo(path string, own ...string) bool {
	same := samePaths(Real(path))
	return slices.ContainsFunc(reals(own), func(of string) bool {
		return slices.ContainsFunc(same, func(other string) bool { return inside.Covers(of, other) })
	})
}

// NotWhole refuses a path, with links or without, that leads to the root folder: a sandbox
// that shows or writes all that is there bounds nothing.
func NotWhole(name string) error {
	to := Real(name)
	if to != "/" && !slices.Contains(samePaths(to), "/") {
		return nil
	}
	if clean := filepath.Clean(name); clean != "/" {
		name = clean + " leads to /, which"
	}
	return isWhole(name)
}

func isWhole(name string) error {
	return &UngivenError{name + " is the whole file system: name the files and folders that are needed"}
}

// UngivenError reports a path that no sandbox is given. Its text proposes the profile that bounds
// no paths.
type UngivenError struct{ why string }

const orGuarded = ", or use profile guarded"

func (e *UngivenError) Error() string { return e.why + orGuarded }

// FixedProfile returns an error about a program whose profile nobody can choose: without the
// proposal of another one.
func FixedProfile(err error) error {
	if _, ok := errors.AsType[*UngivenError](err); ok {
		return worded.Error(err, "%s", strings.TrimSuffix(err.Error(), orGuarded))
	}
	return err
}

// MayGive reports why a path, without symbolic links, should not be given to a program:
// it is, lies in or holds what is yaya's own, or each sandbox has it of its own.
func MayGive(name string, own ...string) error {
	same := samePaths(name)
	for _, of := range own {
		switch of = Real(of); {
		case slices.ContainsFunc(same, func(other string) bool { return inside.Covers(of, other) }):
			return fmt.Errorf("%s belongs to yaya itself, which no program in a sandbox reads or writes", name)
		case inside.Covers(name, of):
			return fmt.Errorf("%s holds %s, which is yaya's own: name the files and folders in it that are needed", name, of)
		}
	}
	return CheckPath(name)
}
