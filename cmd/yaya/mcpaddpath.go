package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wholePaths writes the paths of a command line that are relative to the current folder
// as whole ones: a server is started in the folder of the daemon, or in / in a sandbox,
// and not where it was added. Paths are a command with a separator that begins with a dot
// or exists, and an argument that begins with a dot and exists. The notes say what was
// written, and which words may be files and stay as they are. With a working directory of
// its own, the command line is relative to that.
func wholePaths(words []string, cwd string) (whole []string, dir string, notes []string, err error) {
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
		at := filepath.Join(here, word)
		st, serr := os.Stat(at) //nolint:forbidigo // the user's own command line names it
		dotted := word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")
		switch {
		case !isRelative(word):
		case i == 0 && strings.ContainsRune(word, filepath.Separator) && (dotted || serr == nil), i > 0 && dotted && serr == nil:
			whole[i] = at
			notes = append(notes, fmt.Sprintf("%s is written as %s: a server does not start in this folder", word, at))
		case i > 0 && serr == nil && st.Mode().IsRegular():
			notes = append(notes, fmt.Sprintf("%s stays as it is, and is a file of this folder, in which a server does not start: if the file is meant, give --cwd . or ./%[1]s", word))
		}
	}
	return whole, "", notes, nil
}

// isRelative reports whether a word, taken as a path, is one of the current folder: no
// flag, no path of the home folder, and nothing that begins with a variable.
func isRelative(word string) bool {
	return word != "" && !filepath.IsAbs(word) && word[0] != '~' && word[0] != '-' && !strings.HasPrefix(word, "$")
}
