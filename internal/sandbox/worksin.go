package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// ofAll are folders of the system in which people have folders of their own.
var ofAll = []string{"/usr/src", "/usr/local/src", "/opt", "/tmp", "/var/tmp", "/dev/shm"}

// CheckWorkspace returns an error if a folder, given without symbolic links, cannot be a
// default workspace that a program writes: it is, contains or lies in a path that a
// sandbox hides or protects. It is for a folder that the user did not name.
func CheckWorkspace(home, dir string) error {
	for _, same := range samePaths(dir) {
		if err := checkWorkspace(home, dir, same); err != nil {
			return err
		}
	}
	return nil
}

// checkWorkspace is CheckWorkspace by one of the paths of a folder, which is called name.
func checkWorkspace(home, name, dir string) error {
	refuse := func(how, what string) error {
		return fmt.Errorf("the folder %s %s %s, and is not written because a command starts there: cd to a project, or name what the command may write with --write PATH", name, how, what)
	}
	if dir == "/" {
		return refuse("is", "the whole file system")
	}
	for _, at := range homes(home) {
		at = real(at)
		for _, same := range samePaths(at) {
			switch {
			case dir == same:
				return refuse("is", "your home folder")
			case inside.Covers(dir, same):
				return refuse("holds", "your home folder "+at)
			}
		}
		for _, c := range credentials {
			if err := apart(dir, filepath.Join(at, c), "a place of credentials", refuse); err != nil {
				return err
			}
		}
	}
	for _, at := range slices.Concat(ofSystem[runtime.GOOS], []string{"/boot", "/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp"}) {
		if slices.ContainsFunc(ofAll, func(of string) bool { return inside.Covers(at, of) && inside.Covers(real(of), dir) && dir != real(of) }) {
			continue
		}
		if err := apart(dir, at, "a folder of the system", refuse); err != nil {
			return err
		}
	}
	for _, at := range ofRoot() {
		if err := apart(dir, at, "files that only root reads", refuse); err != nil {
			return err
		}
	}
	return nil
}

// apart refuses a folder that is, holds or lies in a path. Existing content of a folder
// counts.
func apart(dir, at, what string, refuse func(how, what string) error) error {
	for _, name := range []string{at, real(at)} {
		switch {
		case dir == name:
			return refuse("is", what)
		case inside.Covers(name, dir):
			return refuse("lies in", name+" ("+what+")")
		case inside.Covers(dir, name) && isThere(name):
			return refuse("holds", name+" ("+what+")")
		}
	}
	return nil
}

func isThere(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
