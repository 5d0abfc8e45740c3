package manage

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// WholePaths writes the paths of a command line that are relative to the current folder
// as whole ones: a server is started in the folder of the daemon, or in / in a sandbox,
// and not where it was added. Paths are a command with a separator that begins with a dot
// or exists, and what exists and begins with a dot or is given to a flag that is named
// after paths. The notes say what was written, and which words may be paths and stay as
// they are. With a working directory of its own, the command line is relative to that.
func WholePaths(words []string, cwd string) (whole []string, dir string, notes []string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, "", nil, fmt.Errorf("the current folder: %w", err)
	}
	if cwd != "" {
		if isRelative(cwd) {
			dir = filepath.Join(here, cwd)
			return words, dir, []string{fmt.Sprintf("its working directory is %s", dir)}, nil
		}
		return words, cwd, nil, nil
	}
	whole = append(whole, words...)
	for i, word := range words {
		var note string
		if i == 0 {
			whole[i], note = wholeCommand(here, word)
		} else if flag, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(flag, "-") {
			var at string
			at, note = wholeArgument(here, flag, value)
			whole[i] = flag + "=" + at
		} else {
			whole[i], note = wholeArgument(here, words[i-1], word)
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return whole, "", notes, nil
}

// wholeCommand is [WholePaths] for the command itself. One without a separator is looked
// for on PATH.
func wholeCommand(here, word string) (whole, note string) {
	if !isRelative(word) || !strings.ContainsRune(word, filepath.Separator) {
		return word, ""
	}
	at := filepath.Join(here, word)
	if _, err := os.Stat(at); err != nil && !isDotted(word) { //nolint:forbidigo // the user's own command line names it
		return word, ""
	}
	return at, writtenAs(word, at)
}

// wholeArgument is [WholePaths] for one value; before is the name of its environment
// variable, or the word that stands before it.
func wholeArgument(here, before, word string) (whole, note string) {
	if !isRelative(word) {
		return word, ""
	}
	at := filepath.Join(here, word)
	st, err := os.Stat(at) //nolint:forbidigo // the user's own command line names it
	switch {
	case err != nil:
		return word, ""
	case isDotted(word), namesPath(before):
		return at, writtenAs(word, at)
	}
	kind := "file"
	if st.IsDir() {
		kind = "folder"
	}
	return word, fmt.Sprintf("%s is unchanged, although this folder has a %s of that name: a server does not start in this folder; if you mean the %[2]s, use --cwd . or ./%[1]s", word, kind)
}

func writtenAs(word, at string) string {
	return fmt.Sprintf("%s is saved as %s: a server does not start in this folder", word, at)
}

func isDotted(word string) bool {
	return word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")
}

// namesPath reports whether the name of a flag or a variable suggests a path: --repository,
// --db-path, ALLOWED_DIR. One-letter flags are too ambiguous.
func namesPath(name string) bool {
	flag := strings.HasPrefix(name, "--")
	if !flag && name != strings.ToUpper(name) {
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' })
	return len(words) > 0 && slices.Contains([]string{"path", "paths", "dir", "dirs", "directory", "directories", "folder", "folders", "file", "files", "root", "roots", "repository", "repo", "workspace", "workdir"}, words[len(words)-1])
}

// WholeVariables is [WholePaths] for the environment of a command.
func WholeVariables(env map[string]string) (notes []string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the current folder: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at, note := wholeArgument(here, name, env[name])
		if env[name] = at; note != "" {
			notes = append(notes, name+": "+note)
		}
	}
	return notes, nil
}

// isRelative reports whether a word, taken as a path, is relative to the current folder: not a
// flag, not a path below ~, and not one that begins with a variable.
func isRelative(word string) bool {
	return word != "" && !filepath.IsAbs(word) && word[0] != '~' && word[0] != '-' && !strings.HasPrefix(word, "$")
}
