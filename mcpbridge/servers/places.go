package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// Place is a path that a bounded server reads or writes.
type Place struct {
	Name string // as written, or the folder that it stands for
	Path string // absolute, variables and ~ replaced; "" if one has no value
	Real string // Path with existing links resolved; the path that is approved
	// script marks the [Server.Script], which the entry does not list.
	script bool
}

// Places are the paths that a bounded server reads and writes, in addition to the programs of
// the system. They are resolved once, both to be shown and to be opened: otherwise a link that
// appears in between would lead to a path that was not shown.
type Places struct {
	Read, Write []Place
	// Program are the files and folders of the server's installed program, except those of the
	// system, on the user's PATH, or in Read and Write.
	Program []string
	home    string
}

// Places returns the paths that the server reads and writes in [SandboxServer], resolved now.
// [Server.Reads] lists them; a server of the user's own also reads its [Server.Script].
func (s Server) Places(sc Scope) Places {
	out := Places{home: sc.Home}
	sc.literal = dialects[s.Format].literal
	if s.SandboxProfile() != SandboxServer {
		return out
	}
	if dir := sc.path(s.Dir); dir != "" {
		s.Dir = dir
	}
	out.Read = sc.places(s.Reads())
	if script := s.Script(sc); script != "" {
		out.Read = append(out.Read, Place{script, script, sandbox.Real(script), true})
	}
	if s.Sandbox != nil {
		out.Write = sc.places(s.Sandbox.Write)
	}
	out.Program = s.behind(sc, out)
	return out
}

// behind returns the files of the server's installed program. It looks up the program like a
// start does, and finds nothing for a server that cannot start.
func (s Server) behind(sc Scope, at Places) []string {
	if sc.Env == nil {
		return nil
	}
	if sc.Secret == nil { // a file of the program is not named by a secret
		sc.Secret = func(name string) (string, error) { return "${" + secretPrefix + name + "}", nil }
	}
	x, _, err := s.Expand(sc)
	if err != nil {
		return nil
	}
	env := x.Environ(sc.Env)
	program, err := proc.LookPath(x.Command, env)
	if err != nil {
		return nil
	}
	if !filepath.IsAbs(program) {
		if program, err = filepath.Abs(filepath.Join(x.Folder(), program)); err != nil {
			return nil
		}
	}
	var granted []string
	for _, p := range slices.Concat(at.Read, at.Write) {
		if p.Real != "" {
			granted = append(granted, p.Real)
		}
	}
	search, _ := sc.Env("PATH")
	return sandbox.Behind(sc.Home, program, env, sandbox.RuntimesOf(sc.Home, search), granted)
}

// Script returns the path that a bounded server of the user's own can always read because its
// command line names it: the first script, with its package. It returns "" if there is none, for
// a script of the system, and for a server that a folder brings, which reads its folder. A path
// that contains a secret is not one, since paths are shown.
func (s Server) Script(sc Scope) string {
	if s.Project {
		return ""
	}
	for _, arg := range s.Args {
		if strings.HasPrefix(arg, "-") || !strings.ContainsRune(arg, '/') {
			continue
		}
		if arg = sc.replaced(arg); arg != "" && !filepath.IsAbs(arg) {
			arg = filepath.Join(sc.path(s.Folder()), arg)
		}
		if InSystem(arg) {
			return ""
		}
		if info, err := os.Stat(arg); filepath.IsAbs(arg) && err == nil && info.Mode().IsRegular() {
			return packageOf(filepath.Clean(arg), sc.Home)
		}
		break
	}
	return ""
}

// packageOf returns the folder of the package that a script belongs to: the folder of
// dependencies if the script is one of them, or the closest parent with a package file. Without
// one, it returns only the script.
func packageOf(script, home string) string {
	if top, _, found := strings.Cut(script, "/node_modules/"); found {
		return top + "/node_modules"
	}
	for dir := filepath.Dir(script); dir != "/" && dir != home && dir != "."; dir = filepath.Dir(dir) {
		for _, name := range []string{"package.json", "pyproject.toml", "setup.py", "go.mod"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return dir
			}
		}
	}
	return script
}

// OfSystem are folders in which every sandbox of a bounded server has its own files.
var OfSystem = []string{"/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev"}

// InSystem reports whether a path lies in one of [OfSystem].
func InSystem(name string) bool {
	return slices.ContainsFunc(OfSystem, func(dir string) bool { return strings.HasPrefix(filepath.Clean(name), dir+"/") })
}

// path returns a path with variables and ~ replaced, "" if a variable has no value.
func (sc Scope) path(name string) string {
	path := sc.replaced(name)
	if sc.Home != "" && (path == "~" || strings.HasPrefix(path, "~/")) {
		path = filepath.Join(sc.Home, path[1:])
	}
	return path
}

// replaced returns a part of a path with variables replaced, "" if one has no value. It rejects
// secrets, since paths are shown.
func (sc Scope) replaced(name string) string {
	if sc.literal {
		return name
	}
	path := variable().ReplaceAllStringFunc(name, func(ref string) string {
		if !isSecretRef(ref) {
			if v, err := sc.resolve(ref[2 : len(ref)-1]); err == nil {
				return v
			}
		}
		return ref
	})
	if variable().MatchString(path) {
		return ""
	}
	return path
}

// Place returns a path, and the path that it resolves to now.
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

// Named returns the places literally, for names from the user: it follows only links of the
// system.
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
	return Places{named(p.Read), named(p.Write), p.Program, p.home}
}

// With returns the places combined with others.
func (p Places) With(more Places) Places {
	return Places{slices.Concat(p.Read, more.Read), slices.Concat(p.Write, more.Write), p.Program, p.home}
}

// Says describes a place in full: its name, the path that it resolves to if that differs, and
// whether it contains credentials.
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
	var out []string
	for i, at := range all {
		if at.script && slices.ContainsFunc(all[:i], func(o Place) bool { return o.Real != "" && sandbox.Within([]string{o.Real}, at.Real) }) {
			continue
		}
		out = append(out, p.Says(at))
	}
	return strings.Join(out, ", ")
}

// OpenPlaces opens the approved paths of a list: all of them, or none.
func OpenPlaces(list string, all []Place) ([]sandbox.Path, error) {
	var out []sandbox.Path
	for _, at := range all {
		if at.Real == "" {
			return nil, errors.Join(fmt.Errorf("sandbox: %s %q is not an absolute path: a variable in it has no value", list, at.Name), sandbox.Close(out))
		}
		opened, err := sandbox.OpenAgreed(at.Path, at.Real)
		if err != nil {
			if _, link := errors.AsType[*sandbox.LinkError](err); !link {
				err = fmt.Errorf("%w; create it, or remove it from the entry", err)
			}
			return nil, errors.Join(fmt.Errorf("sandbox: %s: %w", list, err), sandbox.Close(out))
		}
		out = append(out, opened)
	}
	return out, nil
}
