package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// maxInterpreters bounds the way from a script to what the kernel runs.
const maxInterpreters = 4

// named is a program, and who has named it.
type named struct {
	name string
	// own says that it was the entry or a file of the user's, as opposed to one of what the
	// sandbox was granted: those are of a project, or of the program itself.
	own bool
	// found reports that PATH led to it.
	found bool
}

// program adds what the program itself is run from, where that is hidden: the file, the
// tree that it is installed in, and the interpreter of a script. Python of a venv, Node of
// a version manager and the like lie in the home folder, which a strict sandbox does not
// show. Paths that a project's files name are shown only if they belong to a known
// runtime.
func (r *Run) program(s *rules, plan *inside.Plan) error {
	to, err := filepath.EvalSymlinks(plan.Path)
	if err != nil {
		return fmt.Errorf("start %s: %w", plan.Path, err)
	}
	if r.ofYayas(to) && !Within(r.policy.OwnParts, to) {
		return fmt.Errorf("%s cannot run in a sandbox: it belongs to yaya itself", to)
	}
	if r.policy.HostWrites {
		return nil // nothing else is hidden
	}
	at := named{plan.Path, true, false}
	for n := 0; at.name != "" && n < maxInterpreters; n++ {
		file, err := r.runs(s, plan, at)
		if err != nil {
			return fmt.Errorf("start %s: %w", plan.Path, err)
		}
		if file == "" {
			return nil // it will not start, or is not what needs something
		}
		at.name, at.found = interpreter(file, plan.Env)
		at.own = !r.granted(s, plan, file)
	}
	return nil
}

// runs shows a program and the links that lead to it, and returns its file; "" if it
// cannot be run.
func (r *Run) runs(s *rules, plan *inside.Plan, at named) (string, error) {
	file, err := filepath.EvalSymlinks(at.name)
	if err != nil {
		return "", nil //nolint:nilerr // the kernel says it, too
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", nil //nolint:nilerr // the kernel says it, too
	}
	links, venvs := linksOf(at.name), []string{}
	for _, link := range links {
		switch dir := filepath.Dir(link[0]); {
		case r.granted(s, plan, link[0]):
			at.own = false
		case r.known(s, plan, link[0]):
			at.own = true
		case !at.own && !at.found && dir != "/" && !r.alias(plan, link[0]):
			if plan.Strict {
				return "", fmt.Errorf("the symbolic link %s, which leads to %s, is not shown in the sandbox: name what it leads to", link[0], file)
			}
			return "", nil
		case at.own && !plan.Strict && plan.Mounts: // it has no links of its own
			r.show(s, plan, dir)
		}
		if venv := filepath.Dir(filepath.Dir(link[0])); at.own && filepath.Base(filepath.Dir(link[0])) == "bin" {
			venvs = append(venvs, venv)
		}
	}
	if !at.own && !r.known(s, plan, file) {
		if plan.Strict {
			return "", fmt.Errorf("%s is neither of the system nor of a known runtime, and a file that the sandbox was granted leads to it: name it in \"read\" if the program may read it", file)
		}
		return "", nil
	}
	for _, venv := range venvs { // Python finds its packages by the link
		if _, err := os.Stat(filepath.Join(venv, "pyvenv.cfg")); err == nil && r.runtime(venv) {
			r.show(s, plan, venv)
		}
	}
	if plan.Strict {
		plan.Aliases = append(plan.Aliases, links...)
	}
	if r.granted(s, plan, file) { // so is as much around it as was meant
		return file, nil
	}
	r.show(s, plan, tree(r, s, file))
	return file, nil
}

// granted reports whether a path lies in what the sandbox was granted, where a project or
// the program itself decides what there is.
func (r *Run) granted(s *rules, plan *inside.Plan, name string) bool {
	return inside.Effective(inside.Sort(s.all), name, plan.Otherwise()) == inside.Write ||
		slices.ContainsFunc(slices.Concat(r.policy.Read, r.policy.Write, r.policy.Partly), func(p Path) bool { return inside.Covers(p.name, name) })
}

// known reports whether a path is shown already, or is part of a runtime that is known by
// its place. Links in /proc and /dev lead elsewhere for each process.
func (r *Run) known(s *rules, plan *inside.Plan, name string) bool {
	if inside.Covers("/proc", name) || inside.Covers("/dev", name) {
		return false
	}
	a := inside.Effective(inside.Sort(s.all), name, plan.Otherwise())
	return a == inside.Read || a == inside.Write || !r.secret(name) && ofRuntime(real(r.policy.Home), name)
}

// alias reports whether a link is there in the sandbox as one by which something that was
// granted is called.
func (r *Run) alias(plan *inside.Plan, name string) bool {
	is := func(link [2]string) bool { return link[0] == name }
	return slices.ContainsFunc(plan.Aliases, is) || r.policy.Home != "" && slices.ContainsFunc(linksOf(r.policy.Home), is)
}

// show makes a file or folder readable, if it contains nothing hidden.
func (r *Run) show(s *rules, plan *inside.Plan, name string) {
	if a := inside.Effective(inside.Sort(s.all), name, plan.Otherwise()); a == inside.Read || a == inside.Write {
		return
	}
	if r.secret(name) {
		return
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() && covered(s.all, name) {
		return
	}
	s.link(inside.Read, name)
}

// ofYayas reports whether a path is yaya's own or lies in what is.
func (r *Run) ofYayas(name string) bool {
	return slices.ContainsFunc(r.own(), func(own string) bool { return inside.Covers(own, name) })
}

// tree returns the folder above a program's bin folder, or above the folder of a version manager's
// shims, or else the file alone.
func tree(r *Run, s *rules, file string) string {
	if bin := filepath.Dir(file); filepath.Base(bin) == "bin" || manager(bin) {
		above := filepath.Dir(bin)
		if above != "/" && (manager(bin) || r.runtime(above)) && !r.secret(above) && !covered(s.all, above) {
			return above
		}
	}
	return file
}

// interpreter is the program that the kernel starts for a script, "" for none, and
// whether it was found by PATH. It splits the first line as the kernel does.
func interpreter(file string, env []string) (name string, found bool) {
	f, err := os.Open(file) //nolint:forbidigo,gosec // what is about to be started
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 256) // as much as the kernel looks at
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", false
	}
	line, script := bytes.CutPrefix(head[:n], []byte("#!"))
	line, _, ended := bytes.Cut(line, []byte("\n"))
	line = bytes.TrimLeft(line, " \t")
	end := bytes.IndexAny(line, " \t\x00")
	if end < 0 {
		if end = len(line); !ended && n == len(head) {
			return "", false // cut off
		}
	}
	name = string(line[:end])
	if !script || !filepath.IsAbs(name) {
		return "", false
	}
	if filepath.Base(name) != "env" {
		return name, false
	}
	rest, _, _ := bytes.Cut(line[end:], []byte{0})
	for _, w := range strings.FieldsFunc(string(rest), func(c rune) bool { return c == ' ' || c == '\t' }) {
		if strings.HasPrefix(w, "-") || strings.Contains(w, "=") {
			continue
		}
		return find(w, env), true
	}
	return "", false
}

// find looks a program up in the PATH of an environment.
func find(name string, env []string) string {
	if strings.Contains(name, "/") {
		return ""
	}
	for _, kv := range slices.Backward(env) {
		path, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if at := filepath.Join(dir, name); filepath.IsAbs(dir) {
				if _, err := exec.LookPath(at); err == nil {
					return at
				}
			}
		}
		return ""
	}
	return ""
}
