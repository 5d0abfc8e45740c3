package gitread

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// open finds the repository of a workspace. It is
//   - the folder .git of the workspace;
//   - what the file .git of the workspace names, if that lies in the workspace, or if
//     it names the workspace in turn (a linked work tree, a submodule): a folder that
//     somebody has sent cannot forge that in another repository;
//   - what a folder above the workspace has in the same way, if all folders on the way
//     belong to the user who runs this, on the same device.
//
// A folder that looks like a bare repository does not count, and links are not
// followed.
func open(work *os.Root, dir string) (*Repo, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, err
	}
	r := &Repo{work: work, attrs: map[string][]attribute{}}
	at := work
	info, err := work.Stat(".")
	if err != nil {
		return nil, err
	}
	for range maxDepth {
		found, err := r.at(at, real, at == work)
		if at != work {
			err = errors.Join(err, at.Close())
		}
		if err != nil || found {
			if err == nil {
				err = r.configure()
			}
			if err != nil {
				return nil, errors.Join(err, r.closeFolders())
			}
			return r, nil
		}
		if at, info, err = above(real, info); err != nil {
			return nil, err
		}
		r.prefix = filepath.Base(real) + "/" + r.prefix
		real = filepath.Dir(real)
	}
	return nil, ErrNoRepository
}

func (r *Repo) closeFolders() error {
	if r.git == nil {
		return nil
	}
	return r.Close()
}

// above opens the folder that holds a folder.
func above(dir string, info fs.FileInfo) (*os.Root, fs.FileInfo, error) {
	parent := filepath.Dir(dir)
	if parent == dir {
		return nil, nil, ErrNoRepository
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil, nil, ErrNoRepository // nothing that can be looked at is above
	}
	up, err := root.Stat(".")
	if err == nil {
		var here fs.FileInfo
		if here, err = root.Lstat(filepath.Base(dir)); err == nil && (!os.SameFile(here, info) || !own(up) || !own(info) || !sameDevice(up, info)) {
			err = ErrNoRepository
		}
	}
	if err != nil {
		return nil, nil, errors.Join(ErrNoRepository, root.Close())
	}
	return root, up, nil
}

// at opens the repository of a folder, if it has one.
func (r *Repo) at(root *os.Root, dir string, workspace bool) (bool, error) {
	info, err := root.Lstat(".git")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !workspace && !own(info) {
		return false, ErrNoRepository
	}
	switch {
	case info.IsDir():
		if r.git, err = openFolder(root, ".git"); err != nil {
			return false, err
		}
		r.common = r.git
		if now, err := r.git.Stat("."); err != nil || !os.SameFile(now, info) {
			return false, errors.Join(ErrNoRepository, err)
		}
	case info.Mode().IsRegular():
		if err := r.linked(root, dir); err != nil {
			return false, err
		}
	default:
		return false, fmt.Errorf("%w: .git is neither a folder nor a file", ErrNoRepository)
	}
	return true, nil
}

// linked opens the repository that the file .git of a folder names.
func (r *Repo) linked(root *os.Root, dir string) error {
	data, err := readFile(root, ".git", maxSmall)
	if err != nil {
		return err
	}
	name, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !ok {
		return fmt.Errorf("%w: .git is a file that names no folder", ErrNoRepository)
	}
	target := within(dir, name)
	if target, err = filepath.EvalSymlinks(target); err != nil {
		return fmt.Errorf("%w: .git names a folder that is not there", ErrNoRepository)
	}
	folder, err := root.Stat(".")
	if err != nil {
		return err
	}
	elsewhere := fmt.Errorf("%w: its file .git names a folder elsewhere that does not name it in turn", ErrNoRepository)
	if worktrees := filepath.Dir(target); filepath.Base(worktrees) == "worktrees" {
		if r.common, err = os.OpenRoot(filepath.Dir(worktrees) + "/."); err != nil {
			return errors.Join(elsewhere, err)
		}
		if r.git, err = openFolder(r.common, "worktrees/"+filepath.Base(target)); err != nil {
			return errors.Join(elsewhere, err, r.common.Close())
		}
		back, err := readFile(r.git, "gitdir", maxSmall)
		if err != nil {
			return errors.Join(elsewhere, err)
		}
		up, err := readFile(r.git, "commondir", maxSmall)
		if err != nil {
			return errors.Join(elsewhere, err)
		}
		file := within(target, strings.TrimSpace(string(back)))
		named, err := os.Stat(filepath.Dir(file))
		if err != nil || !os.SameFile(named, folder) || filepath.Base(file) != ".git" || strings.TrimSpace(string(up)) != "../.." {
			return elsewhere
		}
		return nil
	}
	if rel, err := filepath.Rel(dir, target); err == nil && filepath.IsLocal(rel) && rel != "." {
		r.git, err = openFolder(root, rel)
		r.common = r.git
		return err
	}
	if r.git, err = os.OpenRoot(target + "/."); err != nil {
		return errors.Join(elsewhere, err)
	}
	r.common = r.git
	cfg, err := readConfig(r.git)
	if err != nil {
		return errors.Join(elsewhere, err)
	}
	back := cfg["core.worktree"]
	if back == "" {
		return elsewhere
	}
	if named, err := os.Stat(within(target, back)); err != nil || !os.SameFile(named, folder) {
		return elsewhere
	}
	return nil
}

func within(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// configure reads the configuration and refuses formats that this package cannot
// read.
func (r *Repo) configure() error {
	if _, err := r.git.Lstat("HEAD"); err != nil {
		return ErrNoRepository
	}
	r.store = store{root: r.common, left: maxInflate}
	var err error
	if r.cfg, err = readConfig(r.common); err != nil {
		return err
	}
	if f := strings.ToLower(r.cfg["extensions.objectformat"]); f != "" && f != "sha1" {
		return fmt.Errorf("the Git repository has objects in the format %q, which is not supported", f)
	}
	if f := strings.ToLower(r.cfg["extensions.refstorage"]); f != "" && f != "files" {
		return fmt.Errorf("the Git repository has references in the format %q, which is not supported", f)
	}
	return nil
}
