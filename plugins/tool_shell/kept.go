package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hints are what programs print when the system has kept them from something. Nobody
// but the program sees which file that was: a result says "may".
var hints = []struct {
	texts []string
	note  string
}{
	{
		[]string{"read-only file system", "unable to create", "permission denied", "operation not permitted", "erofs", "eacces", "eperm"},
		"the command may have been kept from a file by the sandbox (profile %s): it writes in the workspace without .git/config and .git/hooks, in its caches and in /tmp, and credentials are hidden",
	},
	{
		[]string{"could not resolve host", "name or service not known", "temporary failure in name resolution", "network is unreachable", "no such host", "enotfound", "eai_again", "enetunreach", "address family not supported"},
		"the command may have been kept from the network by the sandbox (profile %s): without the proxy that the environment names, nothing is reached",
	},
	{
		[]string{"connection refused", "econnrefused"},
		"the command may have been kept from a service of this machine by the sandbox (profile %s): its loopback interface is its own",
	},
}

// remedy is what a model can do about a command that was kept from something.
const remedy = `. If the task needs it, call shell with "outside": true and a reason: a person is asked`

// maxHintText bounds how much of an output is looked at for hints, from its end.
const maxHintText = 64 << 10

// mayHave says what a command that failed may have been kept from.
func mayHave(output, profile string) (notes []string) {
	text := strings.ToLower(output[max(0, len(output)-maxHintText):])
	for _, h := range hints {
		if slices.ContainsFunc(h.texts, func(t string) bool { return strings.Contains(text, t) }) {
			notes = append(notes, fmt.Sprintf(h.note, profile)+remedy)
		}
	}
	return notes
}

// gitState is what configures Git in a workspace: the identity of each file, by path.
type gitState map[string]string

// maxHooks bounds how many hooks are looked at.
const maxHooks = 256

// lookAtGit looks at what a sandbox protects in a workspace: it cannot where it is not
// there, and not with every back end.
func lookAtGit(dir string) gitState {
	s := gitState{}
	see := func(path string) bool {
		info, err := os.Lstat(path)
		if err != nil {
			return false
		}
		s[path] = inode(info)
		if info.Mode().IsRegular() {
			s[path] = identity(info)
		}
		return info.IsDir()
	}
	git := filepath.Join(dir, ".git")
	if !see(git) {
		return s
	}
	see(filepath.Join(git, "config"))
	see(filepath.Join(git, "config.worktree"))
	hooks := filepath.Join(git, "hooks")
	if !see(hooks) {
		return s
	}
	f, err := os.Open(hooks) //nolint:forbidigo,gosec // names only, bounded
	if err != nil {
		return s
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(maxHooks) // as many as can be read
	for _, name := range names {
		see(filepath.Join(hooks, name))
	}
	return s
}

// planted says what of Git's configuration is new, or is another, since s was looked at.
func (s gitState) planted(dir string) (notes []string) {
	now := lookAtGit(dir)
	told := ""
	for _, path := range slices.Sorted(maps.Keys(now)) {
		was, there := s[path]
		if was == now[path] || told != "" && strings.HasPrefix(path, told+"/") {
			continue
		}
		told = path
		name, err := filepath.Rel(dir, path)
		if err != nil {
			name = path
		}
		how := "changed while the command ran"
		if !there {
			how = "was not there before the command, and is now"
		}
		notes = append(notes, fmt.Sprintf("%s %s: look at its config and hooks before you run Git here outside of the sandbox (yaya itself runs no Git)", name, how))
	}
	return notes
}
