package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/gitconf"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// gitWord matches a command line that runs Git.
var gitWord = lazyregexp.New(`(?:^|[\s/;&|(])git(?:\s|$)`)

// aboutGit explains the failure of a command that runs Git below the root of a repository: the
// sandbox only lets it read the folders above its own, so a commit fails, with an error of
// Git's that only mentions a file.
func aboutGit(w io.Writer, profile string, policy sandbox.Policy, argv []string) {
	if profile != "command" && profile != "check" || !gitWord().MatchString(strings.Join(argv, " ")) {
		return
	}
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return // the command met this error, too
	}
	top := gitconf.Above(here)
	git := filepath.Join(top, ".git")
	if top == "" || slices.ContainsFunc(policy.Write, func(p sandbox.Path) bool { return sandbox.Within([]string{p.String()}, git) }) {
		return
	}
	fmt.Fprintf(w, "yaya: this folder belongs to the repository %s, and the command can only read the folders above this one: git status, diff and log work, git commit does not. Run the command in %[1]s, or allow commits: --write %s\n", daemon.Printable(top, 1<<10), daemon.Printable(git, 1<<10))
}

// watchPaths reports the paths that a command line names but the sandbox hides, and the flag
// that shows them, if one does. None shows yaya's own, which are known when the command starts.
func watchPaths(policy *sandbox.Policy, argv []string, told *onceEach, own daemon.OwnPaths) {
	for _, arg := range argv[1:] {
		_, value, _ := strings.Cut(arg, "=") // --root=PATH
		for _, name := range []string{arg, value} {
			if filepath.IsAbs(name) {
				policy.Told = append(policy.Told, filepath.Clean(name))
			}
		}
	}
	policy.Unseen = func(path string) {
		if sandbox.BelongsTo(path, slices.Concat(own.Hidden, own.Readable)...) {
			told.tell(fmt.Sprintf("the command names %s, which belongs to yaya itself: no flag shows it", path))
			return
		}
		to := path
		if at := sandbox.Real(path); at != sandbox.Plain(policy.Home, path) {
			to = at // the flags follow no other link
		}
		told.tell(fmt.Sprintf("the command names %s, which the sandbox hides (to show it: --read %s, or --write %[2]s)", path, to))
	}
}
