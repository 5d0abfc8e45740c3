package sandbox

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// Bounds of what a Cargo home of a sandbox gets from the host's.
const (
	maxCargoFiles = 50_000
	maxCargoBytes = 512 << 20
	maxManifests  = 1000 // folders in which a Cargo.toml is looked for
)

// hostCargo is the name of the host's registry in a sandbox's Cargo home.
const hostCargo = ".host"

// cargoKept are files of the host's Cargo home that stay unchanged.
var cargoKept = []string{"bin", "config.toml", "config", "env"}

// cargo gives the program its own Cargo home, with the packages of the host's. It lies at
// the path of the host's home, because Cargo recompiles packages with another path, and
// host and sandbox share a target folder. Where mounts are impossible there is no network
// to fetch with either, and the host's home stays visible, read-only.
func (r *Run) cargo(s *rules, plan *inside.Plan) error {
	host := real(cmp.Or(last(plan.Env, "CARGO_HOME"), filepath.Join(r.policy.Home, ".cargo")))
	info, err := os.Stat(host) //nolint:gosec // it is only looked for
	if errors.Is(err, fs.ErrNotExist) {
		r.cargoHome = filepath.Join(r.policy.Cache, "cargo")
		return nil
	}
	if err != nil || !info.IsDir() || !plan.Mounts || inside.Effective(inside.Sort(s.all), host, plan.Otherwise()) != inside.Read {
		return nil //nolint:nilerr // it is not a Cargo home, or already the program's own
	}
	// Beside the cache, where no program in a sandbox puts another one in its place.
	own := real(r.policy.Cache) + "-cargo"
	if err := r.leads(own); err != nil {
		return err
	}
	if err := os.MkdirAll(own, 0o700); err != nil { //nolint:forbidigo,gosec // a folder of the user's, named by yaya
		return fmt.Errorf("home of Cargo in the sandbox: %w", err)
	}
	root, err := os.OpenRoot(own)
	if err != nil {
		return fmt.Errorf("home of Cargo in the sandbox: %w", err)
	}
	defer func() { _ = root.Close() }()
	mounts := []inside.Rule{{Path: host, Access: inside.Private, From: own}}
	for _, name := range cargoKept {
		at := filepath.Join(host, name)
		to := real(at)
		info, err := os.Stat(to) //nolint:gosec // a file beside the user's own
		if err != nil || inside.Effective(inside.Sort(s.all), to, plan.Otherwise()) != inside.Read || mountpoint(root, name, info.IsDir()) != nil {
			continue
		}
		mounts = append(mounts, inside.Rule{Path: at, Access: inside.Read, From: to})
	}
	registry := real(filepath.Join(host, "registry"))
	if info, err := os.Stat(registry); err == nil && info.IsDir() && mountpoint(root, hostCargo, true) == nil { //nolint:gosec // it is only looked for
		mounts = append(mounts, inside.Rule{Path: filepath.Join(host, hostCargo), Access: inside.Read, From: registry})
	}
	seed := &cargoSeed{host: host, own: root, seeded: own + "-seeded"}
	if stamp := seed.stamp(); !seed.has(stamp) && r.hasManifest(plan) {
		if err := seed.all(stamp); err != nil {
			return fmt.Errorf("home of Cargo in the sandbox: %w", err)
		}
	}
	s.all = append(s.all, mounts...)
	return nil
}

// last is the value of a variable, "" without one.
func last(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// mountpoint makes a file or folder to mount at, whatever a program has put there, or puts
// there meanwhile: it opens nothing that it has not made.
func mountpoint(root *os.Root, name string, folder bool) (err error) {
	for range 3 { // another start may do the same
		info, lerr := root.Lstat(name)
		if lerr == nil && (folder && info.IsDir() || !folder && info.Mode().IsRegular()) {
			return nil
		}
		if lerr == nil {
			lerr = root.RemoveAll(name)
		}
		if lerr != nil && !errors.Is(lerr, fs.ErrNotExist) {
			return lerr
		}
		if folder {
			err = root.Mkdir(name, 0o700)
		} else {
			var f *os.File
			if f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				err = f.Close()
			}
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return err
}

// hasManifest reports whether there is something for Cargo where the program works.
func (r *Run) hasManifest(plan *inside.Plan) bool {
	left := maxManifests
	var in func(dir string, depth int) bool
	in = func(dir string, depth int) bool {
		left--
		if _, err := os.Lstat(filepath.Join(dir, "Cargo.toml")); err == nil {
			return true
		}
		if depth == 0 || left <= 0 {
			return false
		}
		f, err := os.Open(dir) //nolint:forbidigo,gosec // names only, bounded
		if err != nil {
			return false
		}
		defer func() { _ = f.Close() }()
		all, _ := f.ReadDir(left) // as many as there are
		return slices.ContainsFunc(all, func(e fs.DirEntry) bool {
			return e.IsDir() && e.Name() != ".git" && e.Name() != "node_modules" && left > 0 && in(filepath.Join(dir, e.Name()), depth-1)
		})
	}
	return in(plan.Dir, 0) || slices.ContainsFunc(r.policy.Write, func(p Path) bool { return in(p.name, 2) })
}

// cargoSeed fills a Cargo home with the content of another one. Programs in sandboxes
// write there: everything goes through its root, which no link leads out of, and a file
// whose place such a program has occupied is left out.
type cargoSeed struct {
	host string
	own  *os.Root
	// seeded is the file with the stamp of the last time, outside what programs write.
	seeded string
	files  int
	bytes  int64
	lacks  bool // something could not be put in its place
}

// stamp changes when the host has fetched something; "" says that it has nothing.
func (c *cargoSeed) stamp() string {
	var b strings.Builder
	for _, in := range []string{"registry/cache", "git/checkouts"} {
		all, err := os.ReadDir(filepath.Join(c.host, in))
		if err != nil {
			continue // nothing was fetched
		}
		for _, e := range all {
			if info, err := e.Info(); err == nil {
				fmt.Fprintf(&b, "%s/%s %d\n", in, e.Name(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}

// has reports whether all that the stamp stands for is there, or that there is nothing.
func (c *cargoSeed) has(stamp string) bool {
	if stamp == "" {
		return true
	}
	was, err := readStored(c.seeded, int64(len(stamp))+1)
	return err == nil && string(was) == stamp
}

func (c *cargoSeed) all(stamp string) error {
	c.clean()
	registries, err := os.ReadDir(filepath.Join(c.host, "registry", "cache"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, r := range registries {
		if err := c.crates(path.Join("registry/cache", r.Name())); err != nil {
			return err
		}
	}
	for _, in := range []string{"registry/index", "git/db"} {
		if err := c.copyNewer(in); err != nil {
			return err
		}
	}
	if c.lacks {
		return nil // the next start tries again
	}
	return store(c.seeded, []byte(stamp))
}

// crates links to the packages of a registry, and removes links to those that are gone.
func (c *cargoSeed) crates(dir string) error {
	all, err := os.ReadDir(filepath.Join(c.host, dir))
	if err != nil {
		return err
	}
	if c.own.MkdirAll(dir, 0o700) != nil {
		return nil // something else is there
	}
	there := map[string]bool{}
	for _, e := range all[:min(len(all), maxCargoFiles)] {
		there[e.Name()] = true
		to := path.Join("../../..", hostCargo, "cache", path.Base(dir), e.Name())
		if strings.HasSuffix(e.Name(), ".crate") {
			_ = c.own.Symlink(to, path.Join(dir, e.Name())) // it has that one already, or one of its own
		}
	}
	f, err := c.own.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK|hostfile.Directory, 0)
	if err != nil {
		return nil //nolint:nilerr // it was moved away
	}
	defer func() { _ = f.Close() }()
	own, _ := f.ReadDir(maxCargoFiles) // as many as there are
	for _, e := range own {
		if e.Type()&fs.ModeSymlink != 0 && !there[e.Name()] {
			_ = c.own.Remove(path.Join(dir, e.Name())) // else Cargo says so
		}
	}
	return nil
}

// copyNewer copies the files of a folder that are newer than those that are there. The
// old Git repository of the index of crates.io is left out: it is large, and nothing uses it.
func (c *cargoSeed) copyNewer(dir string) error {
	return filepath.WalkDir(filepath.Join(c.host, dir), func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // it has gone meanwhile, or is not for this user
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.host, at)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), "github.com-") && path.Dir(rel) == "registry/index" || c.own.MkdirAll(rel, 0o700) != nil {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		if have, err := c.own.Lstat(rel); err == nil && !info.ModTime().After(have.ModTime()) {
			return nil
		}
		if c.files, c.bytes = c.files+1, c.bytes+info.Size(); c.files > maxCargoFiles || c.bytes > maxCargoBytes {
			return fs.SkipAll // Cargo fetches the rest
		}
		f, err := os.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // bounded
		if err != nil {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		defer func() { _ = f.Close() }()
		c.write(rel, io.LimitReader(f, info.Size()))
		return nil
	})
}

// Files that are not whole yet have names of their own at the top of the home: several
// sandboxes of the same may start at once.
const (
	partPrefix = ".part-"
	partAge    = time.Hour // after which nobody writes one
)

// clean removes what starts that were killed have left.
func (c *cargoSeed) clean() {
	f, err := c.own.OpenFile(".", os.O_RDONLY|hostfile.Directory, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	all, _ := f.ReadDir(maxManifests) // as many as there are
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), partPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > partAge {
			_ = c.own.RemoveAll(e.Name()) // a program may have made it
		}
	}
}

// write puts a file in its place when it is whole.
func (c *cargoSeed) write(name string, from io.Reader) {
	part := partPrefix + rand.Text()
	f, err := c.own.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		c.lacks = true
		return
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.own.Rename(part, name)
	}
	if err != nil {
		c.lacks = true
		_ = c.own.Remove(part) // it does without
	}
}
