package manage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// settled returns a permit in its stored form: existing paths with links resolved now, so that
// a changed link gives no further access later.
func (s *Manager) settled(x servers.Server, asked servers.Sandbox) (servers.Sandbox, error) {
	own, files := s.cfg.Ungiven()
	sc := s.scope(x)
	paths := func(flag string, names []string) ([]string, error) {
		out := slices.Clone(names)
		for i, name := range names {
			at := sc.Place(name)
			if at.Path == "" {
				return nil, fmt.Errorf("%s %s: a variable in it has no value where yaya runs", flag, name)
			}
			if err := sandbox.MayGive(at.Real, own...); err != nil {
				if x.Package != "" {
					err = sandbox.FixedProfile(err)
				}
				return nil, fmt.Errorf("%s %s: %w", flag, name, err)
			}
			if slices.ContainsFunc(files, func(f string) bool { return sandbox.Real(f) == at.Real }) { // a folder that contains such a file is allowed, but the file stays hidden
				return nil, fmt.Errorf("%s %s: %w", flag, name, sandbox.MayGive(at.Real, at.Real))
			}
			if _, err := os.Stat(at.Real); err != nil {
				return nil, fmt.Errorf("%s %s: %w", flag, name, notThere(flag, at.Real, err, own))
			}
			out[i] = filepath.Clean(name) // one spelling of each
			if at.Real != sandbox.Plain(sc.Home, at.Path) {
				out[i] = at.Real
			}
		}
		return out, nil
	}
	var errs [2]error
	asked.Read, errs[0] = paths("--read", asked.Read)
	asked.Write, errs[1] = paths("--write", asked.Write)
	if err := errors.Join(errs[:]...); err != nil {
		return asked, err
	}
	for _, name := range asked.Env {
		if _, set := os.LookupEnv(name); !set {
			return asked, fmt.Errorf("--env %s: the variable is not set where yaya runs: set it there, and start yaya again", name)
		}
	}
	return asked, nil
}

// notThere returns the remedy for a path that does not exist.
func notThere(flag, name string, err error, own []string) error {
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if near := sandbox.Nearest(name); sandbox.MayGive(near, own...) == nil && near != "/" {
		return fmt.Errorf("file or folder not found: create it first, or name the folder above it: %s %s", flag, near)
	}
	return errors.New("file or folder not found: create it first")
}

// kept are the paths of a list that some names mean: as they are in it, or as they are
// kept if a link is in them.
func (s *Manager) kept(x servers.Server, list, names []string) []string {
	sc := s.scope(x)
	out := slices.Clone(names)
	for i, name := range names {
		if slices.Contains(list, name) {
			continue
		}
		at := sc.Place(name)
		j := slices.IndexFunc(list, func(of string) bool {
			p := sc.Place(of)
			return at.Path != "" && (p.Path == at.Path || p.Path == at.Real)
		})
		if j >= 0 {
			out[i] = list[j]
		}
	}
	return out
}

// AbsoluteFlag rejects a relative path in a flag.
func AbsoluteFlag(flag, name string) error {
	if servers.Anchored(name) {
		return nil
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s %s: a server does not work in this folder: write the whole path, %s", flag, name, abs)
}
