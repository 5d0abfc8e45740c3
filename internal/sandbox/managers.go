package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// managers are the folders of version managers below the home folder: they hold programs
// and what those are made of. Others have credentials beside their bin folder.
var managers = []string{
	".asdf", ".bun", ".deno", ".dotnet", ".elan", ".fnm", ".ghcup", ".goenv", ".jenv", ".juliaup", ".n", ".nodebrew", ".nodenv", ".nvm", ".phpenv", ".pixi", ".proto",
	".pyenv", ".rbenv", ".rustup", ".rvm", ".rye", ".sdkman", ".volta", ".npm-global", ".npm-packages",
	".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm", ".local/share/rtx", ".local/share/uv", ".local/pipx",
	"Library/pnpm", "Library/Application Support/fnm",
}

// ofManager reports whether a folder is that of a version manager, or lies in it.
func ofManager(home, dir string) bool {
	return home != "" && slices.ContainsFunc(managers, func(name string) bool { return inside.Covers(filepath.Join(home, name), dir) })
}

// distributions are folders below the home folder that Conda is installed in.
var distributions = []string{".conda/envs", "anaconda3", "mambaforge", "micromamba", "miniconda3", "miniforge3"}

// ofRuntime reports whether a path lies in a folder of runtimes that is known by its name,
// so that what a project calls it shows nothing else.
func ofRuntime(home, name string) bool {
	return ofManager(home, name) || home != "" && slices.ContainsFunc(distributions, func(of string) bool { return inside.Covers(filepath.Join(home, of), name) })
}

// Runtimes returns what the programs in a folder of PATH are made of: the folder, and
// with it the tree of the version manager that it belongs to.
func Runtimes(home, dir string) []string {
	dir = filepath.Clean(dir)
	above := filepath.Dir(dir)
	switch base := filepath.Base(dir); {
	case base != "bin" && base != "shims":
	case manager(dir):
		return []string{above, dir} // without what is hidden, which may be the first
	case home == "":
	case above == filepath.Join(home, ".local"): // where tools of these are linked
		all := []string{dir}
		for _, of := range []string{"uv/tools", "uv/python", "pipx", "mise", "fnm", "pnpm"} {
			all = append(all, filepath.Join(above, "share", of))
		}
		return all
	case above == filepath.Join(home, ".cargo"): // beside them lie tokens
		return []string{dir, filepath.Join(above, "registry"), filepath.Join(home, ".rustup")}
	case ofManager(home, above):
		return []string{above}
	}
	if filepath.Base(dir) == "bin" && installed(above) {
		return []string{above, dir}
	}
	return []string{dir}
}

// manager reports whether a folder holds the shims of a version manager, wherever that was
// installed: scripts that start the program of a version, which lies beside them.
func manager(dir string) bool {
	return filepath.Base(dir) == "shims" && slices.ContainsFunc([]string{"versions", "installs"}, func(of string) bool {
		info, err := os.Lstat(filepath.Join(filepath.Dir(dir), of))
		return err == nil && info.IsDir()
	})
}

// installed reports whether a folder holds a runtime with its libraries.
func installed(dir string) bool {
	for _, sign := range []string{"pyvenv.cfg", "conda-meta", "lib/python3*", "lib/node_modules"} {
		if found, err := filepath.Glob(filepath.Join(escaped(dir), sign)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// runtime reports whether a folder in the home folder holds a runtime with its
// libraries, as opposed to programs beside what they keep.
func (r *Run) runtime(dir string) bool {
	home := ""
	for _, h := range homes(r.policy.Home) {
		if h = real(h); h != "/" && inside.Covers(h, dir) && len(h) > len(home) {
			home = h
		}
	}
	switch {
	case home == "": // one of the system, or of a project
		return true
	case inside.Covers(dir, filepath.Join(home, ".local")):
		return false
	case ofManager(home, dir):
		return true
	}
	return installed(dir)
}

// escaped is a path as a pattern that it alone matches.
func escaped(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// secret reports whether a path is hidden by name: it is, holds or lies in credentials
// or files that only root reads, or it is hidden by the policy. Only who names it shows it.
func (r *Run) secret(name string) bool {
	dirs := homes(r.policy.Home)
	if name == "/" || slices.ContainsFunc(dirs, func(home string) bool { return inside.Covers(name, real(home)) }) {
		return true
	}
	return slices.ContainsFunc(r.secrets(), func(at string) bool { return inside.Covers(at, name) || inside.Covers(name, at) })
}

// secrets are the paths that [Run.secret] compares with, and where links lead that they are.
// They are resolved once: a start compares them with every folder of PATH.
func (r *Run) secrets() []string {
	if r.hidden == nil || r.hiddenFrom != r.dir {
		all := slices.Concat(credentialPaths(r.policy.Home, r.dir), ofRoot(), r.policy.Hide, r.box.Own)
		for i, to := range reals(all) {
			if to != all[i] {
				all = append(all, to)
			}
		}
		r.hidden, r.hiddenFrom = all, r.dir
	}
	return r.hidden
}
