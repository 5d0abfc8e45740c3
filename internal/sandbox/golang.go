package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// goAddr is the address at which a sandbox finds the host's modules: a loopback
// address at which no host of a policy can be, and for which Go takes no proxy.
const goAddr = "127.0.0.3:3128"

// maxGoEnv bounds what is read of a file of settings of Go, in bytes.
const maxGoEnv = 64 << 10

// goHost describes Go on the host: its settings and modules.
//
// A sandbox has a GOPATH of its own: Go writes there what it fetches and what it
// installs, and the head of the checksum database. Modules that the host has come from
// the host's module cache, as from a proxy of modules. That proxy knows versions by
// their number alone: the latest is what the next proxy says it is, for the host's cache
// has only those that somebody asked for. Private modules (GONOPROXY) have no other
// proxy, and a sandbox has no credentials to fetch them with.
type goHost struct {
	modules string // the folder cache/download of the module cache, "" without one
	bin     string // where go install puts programs
	gobin   bool   // GOBIN names that
	proxy   string // GOPROXY
	private string // GONOPROXY
	flags   string // GOFLAGS
}

// hostGo looks at what Go is set to for a program. It returns nil where a GOPATH of
// another place would be another program's work: without modules.
func hostGo(env []string, home string) *goHost {
	set := map[string]string{}
	for _, file := range goSettings(env, home) {
		readGoEnv(file, set)
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); value != "" {
			set[name] = value
		}
	}
	if set["GO111MODULE"] == "off" {
		return nil
	}
	gopath := filepath.SplitList(cmp.Or(set["GOPATH"], filepath.Join(home, "go")))[0]
	g := &goHost{
		bin:     cmp.Or(set["GOBIN"], filepath.Join(gopath, "bin")),
		proxy:   cmp.Or(set["GOPROXY"], "https://"+golang[0]+",direct"),
		private: cmp.Or(set["GONOPROXY"], set["GOPRIVATE"]),
		flags:   set["GOFLAGS"],
		gobin:   set["GOBIN"] != "",
		modules: filepath.Join(cmp.Or(set["GOMODCACHE"], filepath.Join(gopath, "pkg", "mod")), "cache", "download"),
	}
	if info, err := os.Stat(g.modules); err != nil || !info.IsDir() || !filepath.IsAbs(g.modules) { //nolint:gosec // it is only looked for
		g.modules = ""
	}
	return g
}

// goSettings are the files of settings of Go, those that outweigh others last: of the
// distribution, and of the user (go env -w).
func goSettings(env []string, home string) (files []string) {
	if program, err := filepath.EvalSymlinks(find("go", env)); err == nil {
		files = append(files, filepath.Join(filepath.Dir(filepath.Dir(program)), "go.env"))
	}
	config := cmp.Or(last(env, "XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if runtime.GOOS == "darwin" {
		config = filepath.Join(home, "Library", "Application Support")
	}
	user := cmp.Or(last(env, "GOENV"), filepath.Join(config, "go", "env"))
	if filepath.IsAbs(user) { // else it is "off", or Go refuses it
		files = append(files, user)
	}
	return files
}

// readGoEnv adds the settings of a file, as far as there is one.
func readGoEnv(name string, set map[string]string) {
	data, err := readStored(name, maxGoEnv)
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), "=")
		if ok && key != "" && key[0] >= 'A' && key[0] <= 'Z' {
			set[key] = value
		}
	}
}

// environ are the variables by which Go in a sandbox finds its own folders, and what the
// host has: at the endpoint when there is one, else in the host's folder. Without a
// network that folder alone is the proxy, since Go takes a toolchain from one that is
// alone without a look into the checksum database.
func (g *goHost) environ(cache string, mode NetMode, endpoint bool) [][2]string {
	own := filepath.Join(cache, "go")
	vars := [][2]string{
		{"GOPATH", own}, {"GOMODCACHE", filepath.Join(own, "pkg", "mod")},
		{"GOFLAGS", strings.TrimSpace(g.flags + " -modcacherw")}, // as other caches are
	}
	if g.gobin { // else there is none, which Go wants for programs of other systems
		vars = append(vars, [2]string{"GOBIN", filepath.Join(own, "bin")})
	}
	if g.modules == "" {
		return vars
	}
	from := (&url.URL{Scheme: "file", Path: g.modules}).String()
	switch {
	case endpoint:
		from = "http://" + goAddr + "," + g.proxy
	case mode == Hosts:
		from += "," + g.proxy
	}
	return append(vars, [2]string{"GOPROXY", from}, [2]string{"GONOPROXY", "none"})
}

// maxTools bounds how many programs of the host a GOPATH links to.
const maxTools = 1000

// link has the programs that the host has installed lie in the sandbox's own GOPATH, too:
// scripts call them by that name. Links to those that are gone are removed. Folders that a
// sandbox can write are changed only through their root, which no link leads out of.
func (g *goHost) link(cache string) error {
	tools, err := g.tools()
	if err != nil {
		return fmt.Errorf("look for programs that Go installed: %w", err)
	}
	root, err := os.OpenRoot(cache)
	if err != nil {
		return fmt.Errorf("cache of the sandbox: %w", err)
	}
	defer func() { _ = root.Close() }()
	const bin = "go/bin"
	if len(tools) > 0 && root.MkdirAll(bin, 0o700) != nil {
		return nil // a program in the sandbox has put something else there, and does without
	}
	dir, err := root.OpenFile(bin, os.O_RDONLY|syscall.O_NONBLOCK|hostfile.Directory, 0)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to link to, or something else is there
	}
	defer func() { _ = dir.Close() }()
	there := map[string]bool{}
	own, _ := dir.ReadDir(2 * maxTools) // as many as there are
	for _, e := range own {
		there[e.Name()] = true
		at, to := path.Join(bin, e.Name()), filepath.Join(g.bin, e.Name())
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if now, err := root.Readlink(at); err != nil || now != to {
			continue
		}
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // it is only looked for
			_ = root.Remove(at)
		}
	}
	for _, tool := range tools {
		if !there[tool.Name()] {
			_ = root.Symlink(filepath.Join(g.bin, tool.Name()), path.Join(bin, tool.Name())) // another start made it meanwhile
		}
	}
	return nil
}

// tools are the programs that the host has installed.
func (g *goHost) tools() ([]fs.DirEntry, error) {
	f, err := os.OpenFile(g.bin, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // names only, bounded
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	tools, err := f.ReadDir(maxTools)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return tools, err
}

// ServeHTTP serves the modules of the host, in the protocol of GOPROXY.
func (g *goHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	module, file, found := strings.Cut(name, "/@v/")
	if rest, latest := strings.CutSuffix(name, "/@latest"); latest {
		module = rest
	}
	private := matchesPrefix(g.private, unescaped(module))
	if r.Method == http.MethodGet && found && (private || file != "list") {
		f, err := os.OpenInRoot(g.modules, filepath.FromSlash(name))
		if err == nil {
			defer func() { _ = f.Close() }()
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				http.ServeContent(w, r, "", info.ModTime(), f)
				return
			}
		}
	}
	if private {
		http.Error(w, "the module is private (GONOPROXY, GOPRIVATE) and not in the module cache of the host: a sandbox has no credentials; fetch it outside the sandbox", http.StatusForbidden)
		return
	}
	http.NotFound(w, r)
}

// unescaped is a path of a module as people write it: !x stands for X.
func unescaped(module string) string {
	var b strings.Builder
	up := false
	for _, c := range module {
		switch {
		case c == '!':
			up = true
			continue
		case up:
			b.WriteString(strings.ToUpper(string(c)))
		default:
			b.WriteRune(c)
		}
		up = false
	}
	return b.String()
}

// matchesPrefix reports whether the first parts of a module's path match one of the
// patterns, as those of GONOPROXY do.
func matchesPrefix(patterns, module string) bool {
	parts := strings.Split(module, "/")
	for p := range strings.SplitSeq(patterns, ",") {
		p = strings.TrimSuffix(strings.TrimSpace(p), "/")
		n := strings.Count(p, "/") + 1
		if p == "" || n > len(parts) {
			continue
		}
		if ok, err := path.Match(p, strings.Join(parts[:n], "/")); err == nil && ok {
			return true
		}
	}
	return false
}
