//go:build unix

package proc

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// LookPath resolves a command through the child's own PATH; a path with a slash
// is taken as it is. The current directory is never searched.
func LookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	var looked []string
	for dir := range strings.SplitSeq(search, ":") {
		if !strings.HasPrefix(dir, "/") || slices.Contains(looked, dir) {
			continue
		}
		looked = append(looked, dir)
		path := dir + "/" + name
		if st, err := os.Stat(path); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &notFoundError{name, looked}
}

// command returns how a resolved command is run.
func command(path string, spec Spec) (*exec.Cmd, error) {
	cmd := exec.CommandContext(context.Background(), path, spec.Args...) //nolint:gosec // running what is configured is the purpose
	cmd.Args[0] = spec.Path
	return cmd, nil
}
