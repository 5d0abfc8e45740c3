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

// program adds what the program itself is run from, where that is hidden: the file, the
// tree that it is installed in, the interpreter of a script, and the folders of the
// links on the way. Python of a venv, Node of a version manager and the like lie in the
// home folder, which a strict sandbox does not show.
func (r *Run) program(s *rules, plan *inside.Plan) error {
	to, err := filepath.EvalSymlinks(plan.Path)
	if err != nil {
		return fmt.Errorf("start %s: %w", plan.Path, err)
	}
	if r.ofYayas(to) {
		return fmt.Errorf("%s cannot run in a sandbox: it belongs to yaya itself", to)
	}
	for name, n := plan.Path, 0; name != "" && n < maxInterpreters; n++ {
		file := r.follow(s, plan, name)
		if file == "" {
			return nil // it will not start, or is not what needs something
		}
		r.show(s, plan, tree(r, s, file))
		name = interpreter(file, plan.Env)
	}
	return nil
}

// follow goes along symbolic links to a file and shows the folders that they lie in.
func (r *Run) follow(s *rules, plan *inside.Plan, name string) string {
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return ""
		}
		r.links(s, plan, filepath.Dir(name))
		at := filepath.Join(dir, filepath.Base(name))
		to, err := os.Readlink(at)
		if err != nil {
			return at
		}
		r.show(s, plan, dir)
		if name = to; !filepath.IsAbs(to) {
			name = filepath.Join(dir, to)
		}
	}
	return ""
}

// links shows the folders of links in a path, which a program names by that path.
func (r *Run) links(s *rules, plan *inside.Plan, dir string) {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if to, err := os.Readlink(dir); err == nil && to != "" {
			r.show(s, plan, real(filepath.Dir(dir)))
		}
	}
}

// show lets a file or folder be read, if nothing hidden comes with it.
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
	return slices.ContainsFunc(r.box.own(), func(own string) bool { return inside.Covers(own, name) })
}

// tree is what a program has beside its bin folder, or the file alone.
func tree(r *Run, s *rules, file string) string {
	if bin := filepath.Dir(file); filepath.Base(bin) == "bin" {
		above := filepath.Dir(bin)
		if above != "/" && r.runtime(above) && !r.secret(above) && !covered(s.all, above) {
			return above
		}
	}
	return file
}

// interpreter is the program that the kernel starts for a script, "" for none.
func interpreter(file string, env []string) string {
	f, err := os.Open(file) //nolint:forbidigo,gosec // what is about to be started
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 256) // as much as the kernel looks at
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	line, found := bytes.CutPrefix(head[:n], []byte("#!"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if !found || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") || strings.Contains(w, "=") {
			continue
		}
		return find(w, env)
	}
	return ""
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
