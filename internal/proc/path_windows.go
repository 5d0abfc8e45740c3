package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// variable returns the value of a variable, whose name has no case here.
func variable(env []string, name string) (value string) {
	for _, kv := range env {
		if key, v, ok := strings.Cut(kv, "="); ok && strings.EqualFold(key, name) {
			value = v
		}
	}
	return value
}

// extensions are those of programs, in the order in which they are looked for.
func extensions(env []string) []string {
	var out []string
	for e := range strings.SplitSeq(variable(env, "PATHEXT"), ";") {
		if e = strings.ToLower(e); strings.HasPrefix(e, ".") {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return []string{".com", ".exe", ".bat", ".cmd"}
	}
	return out
}

// LookPath resolves a command through the child's own PATH and PATHEXT; a path with a
// separator or a drive is taken as it is, but for its extension. The current directory is
// never searched.
func LookPath(name string, env []string) (string, error) {
	known := extensions(env)
	if strings.ContainsAny(name, `/\:`) {
		if at, ok := withExtension(name, known); ok {
			return at, nil
		}
		return name, nil // starting it says why it cannot be
	}
	var looked []string
	for _, dir := range filepath.SplitList(variable(env, "PATH")) {
		if !filepath.IsAbs(dir) || slices.Contains(looked, dir) {
			continue
		}
		looked = append(looked, dir)
		if at, ok := withExtension(filepath.Join(dir, name), known); ok {
			return at, nil
		}
	}
	return "", &notFoundError{name, looked}
}

// withExtension returns the program that a path names, with the extension that it may leave
// out. A file without one is not a program here: beside npx.cmd lies a script of a shell.
func withExtension(path string, known []string) (string, bool) {
	if slices.Contains(known, strings.ToLower(filepath.Ext(path))) && isFile(path) {
		return path, true
	}
	for _, e := range known {
		if isFile(path + e) {
			return path + e, true
		}
	}
	return "", false
}

func isFile(path string) bool {
	st, err := os.Stat(path) //nolint:forbidigo // it is looked for, no more
	return err == nil && st.Mode().IsRegular()
}

// nodeScripts are the scripts that the batch files of Node run, below the folder of node.exe.
var nodeScripts = map[string]string{
	"npx": `node_modules\npm\bin\npx-cli.js`,
	"npm": `node_modules\npm\bin\npm-cli.js`,
}

// errHeld says that a program cannot be held before it begins.
var errHeld = errors.New("no program can be held here: Windows passes no numbered descriptors")

// command returns how a resolved command is run. Batch files are run by cmd.exe, which reads
// their arguments again, by rules of its own: it would run what an argument says after "&".
// So the scripts of npm and npx are run by node itself, and for other batch files arguments
// that cmd.exe could take for anything but text are refused.
func command(path string, spec Spec) (*exec.Cmd, error) {
	if spec.Held {
		return nil, errHeld
	}
	args := spec.Args
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".bat" || ext == ".cmd" {
		base := strings.ToLower(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
		node, script := filepath.Join(filepath.Dir(path), "node.exe"), filepath.Join(filepath.Dir(path), nodeScripts[base])
		if nodeScripts[base] != "" && isFile(node) && isFile(script) {
			path, args = node, append([]string{script}, args...)
		} else if err := checkBatch(path, args); err != nil {
			return nil, err
		}
	}
	return exec.CommandContext(context.Background(), path, args...), nil //nolint:gosec // running what is configured is the purpose
}

// special are the characters that mean something to cmd.exe, even within quotes.
const special = "\"%!^&|<>()\r\n\x00"

// checkBatch refuses what cmd.exe would not take for text.
func checkBatch(path string, args []string) error {
	if strings.ContainsAny(path, "\"%!^&|<>\r\n\x00") {
		return fmt.Errorf("%q is a batch file whose path cmd.exe would read as more than a path: move it", path)
	}
	for n, arg := range args {
		if i := strings.IndexAny(arg, special); i >= 0 {
			return fmt.Errorf("argument %d has %q, and %s is a batch file, for which cmd.exe gives that a meaning of its own: name the program that the batch file runs instead, such as node.exe with its script", n+1, arg[i], path)
		}
	}
	return nil
}
