package servers

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// Place is a path that a bounded server reads or writes.
type Place struct {
	Name string // as it is written, or the folder that it stands for
	Path string // absolute, variables and ~ replaced; "" if one has no value
	Real string // where Path leads, as far as it is there; the path that is agreed to
}

// Places are what a bounded server reads and writes, beside the programs of the system.
// They are looked up once, to be shown and to be opened: a link that appears between two
// looks would not be what was shown.
type Places struct {
	Read, Write []Place
	home        string
}

// Places returns the paths that the server reads and writes in [SandboxServer], where
// they lead now. [Server.Reads] says which.
func (s Server) Places(sc Scope) Places {
	out := Places{home: sc.Home}
	if s.SandboxProfile() != SandboxServer {
		return out
	}
	if dir := sc.path(s.Dir); dir != "" {
		s.Dir = dir
	}
	out.Read = sc.places(s.Reads())
	if s.Sandbox != nil {
		out.Write = sc.places(s.Sandbox.Write)
	}
	return out
}

// path is a path with variables and ~ replaced, "" if one has no value. A secret is no
// part of a path, which is shown.
func (sc Scope) path(name string) string {
	path := variable.ReplaceAllStringFunc(name, func(ref string) string {
		if !isSecretRef(ref) {
			if v, err := sc.resolve(ref[2 : len(ref)-1]); err == nil {
				return v
			}
		}
		return ref
	})
	if variable.MatchString(path) {
		return ""
	}
	if sc.Home != "" && (path == "~" || strings.HasPrefix(path, "~/")) {
		path = filepath.Join(sc.Home, path[1:])
	}
	return path
}

// Place returns a path, and where it leads now.
func (sc Scope) Place(name string) Place {
	p := Place{Name: name}
	if path := sc.path(name); filepath.IsAbs(path) {
		p.Path = filepath.Clean(path)
		p.Real = sandbox.Real(p.Path)
	}
	return p
}

func (sc Scope) places(names []string) []Place {
	all := make([]Place, len(names))
	for i, name := range names {
		all[i] = sc.Place(name)
	}
	return all
}

// Named returns the places as their names say, for names that are the user's own: no link
// is followed but those of the system.
func (p Places) Named() Places {
	named := func(all []Place) []Place {
		out := slices.Clone(all)
		for i, at := range out {
			if at.Path != "" {
				out[i].Real = sandbox.Plain(p.home, at.Path)
			}
		}
		return out
	}
	return Places{named(p.Read), named(p.Write), p.home}
}

// With returns the places and others.
func (p Places) With(more Places) Places {
	return Places{slices.Concat(p.Read, more.Read), slices.Concat(p.Write, more.Write), p.home}
}

// Says is a place in words, whole: its name, where it leads if the name does not say so,
// and that it holds credentials.
func (p Places) Says(at Place) string {
	out := Shown(at.Name)
	var more []string
	if at.Real != "" && (strings.Contains(at.Name, "${") || at.Real != at.Path && at.Real != sandbox.Plain(p.home, at.Path)) {
		more = append(more, "leads to "+Shown(at.Real))
	}
	if at.Real != "" && sandbox.Credentials(p.home, at.Real) {
		more = append(more, "credentials")
	}
	if len(more) > 0 {
		out += " (" + strings.Join(more, "; ") + ")"
	}
	return out
}

func (p Places) list(all []Place) string {
	out := make([]string, len(all))
	for i, at := range all {
		out[i] = p.Says(at)
	}
	return strings.Join(out, ", ")
}

// OpenPlaces opens the paths of a list as they were agreed to, or none.
func OpenPlaces(list string, all []Place) ([]sandbox.Path, error) {
	var out []sandbox.Path
	for _, at := range all {
		if at.Real == "" {
			return nil, errors.Join(fmt.Errorf("sandbox: %s %q is not an absolute path: a variable in it has no value", list, at.Name), sandbox.Close(out))
		}
		opened, err := sandbox.OpenAgreed(at.Path, at.Real)
		if err != nil {
			if _, link := errors.AsType[*sandbox.LinkError](err); !link {
				err = fmt.Errorf("%w; make it, or take it out of the entry", err)
			}
			return nil, errors.Join(fmt.Errorf("sandbox: %s: %w", list, err), sandbox.Close(out))
		}
		out = append(out, opened)
	}
	return out, nil
}
