package gitconf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func run(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_ALLOW_PROTOCOL=file")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("script %q = %v, want no error: %s", script, err, out)
	}
}

// The repository of a linked work tree is found where both name each other, and nothing
// else that a file .git names.
func TestElsewhere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	const linked = "git init -q main; git -C main commit -q --allow-empty -m x; git -C main worktree add -q ../ws; "
	for name, tt := range map[string]struct {
		make string // the folder ws
		want string // Common
	}{
		"a work tree":             {linked, "main/.git"},
		"in its repository":       {"git init -q .; git commit -q --allow-empty -m x; git worktree add -q ws", ".git"},
		"of a bare repository":    {linked + "git clone -q --bare main bare; rm -r ws; git -C bare worktree add -q ../ws 2>/dev/null", "bare"},
		"by a relative path":      {linked + "echo 'gitdir: ../main/.git/worktrees/ws' >ws/.git; echo ../../../../ws/.git >main/.git/worktrees/ws/gitdir", "main/.git"},
		"a module":                {"git init -q lib; git -C lib commit -q --allow-empty -m x; git init -q top; cd top; git submodule --quiet add ../lib ws; cd ..; mv top t; ln -s t/ws ws; sed -i s,x,x, t/.git/config", "t/.git/modules/ws"},
		"its own repository":      {"git init -q ws", ""},
		"no repository":           {"mkdir ws", ""},
		"not named in turn":       {linked + "mkdir evil; cp ws/.git evil/; rm -r ws; mv evil ws; echo /nowhere/.git >main/.git/worktrees/ws/gitdir", ""},
		"of another work tree":    {linked + "git -C main worktree add -q ../other; cp other/.git ws/.git", ""},
		"the repository itself":   {linked + "echo 'gitdir: ../main/.git' >ws/.git", ""},
		"its own files":           {"mkdir -p worktrees/w; mv worktrees/w .; mkdir -p x/worktrees; mv w x/worktrees/; cd x; echo ref >HEAD; mkdir objects refs; touch config; cd worktrees/w; echo 'gitdir: .' >.git; echo ./.git >gitdir; echo ../.. >commondir; cd ../../..; ln -s x/worktrees/w ws", ""},
		"folders named worktrees": {"mkdir -p worktrees/w ws; echo \"gitdir: $PWD/worktrees/w\" >ws/.git; echo $PWD/ws/.git >worktrees/w/gitdir; echo ../.. >worktrees/w/commondir", ""},
		"around the folder":       {"git init -q --bare .; mkdir -p ws worktrees/w; echo \"gitdir: $PWD/worktrees/w\" >ws/.git; echo $PWD/ws/.git >worktrees/w/gitdir; echo ../.. >worktrees/w/commondir", ""},
		"another common folder":   {linked + "echo ../../../.. >main/.git/worktrees/ws/commondir", ""},
		"a link .git":             {"git init -q main; mkdir ws; ln -s ../main/.git ws/.git", ""},
		"a pipe .git":             {"mkdir ws; mkfifo ws/.git", ""},
		"without a work tree":     {"git init -q --separate-git-dir=sep ws", ""},
		"objects elsewhere":       {linked + "mv main/.git/objects o; ln -s ../../o main/.git/objects", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			run(t, dir, tt.make)
			l, found := Elsewhere(dir + "/ws")
			if got := strings.TrimPrefix(l.Common, dir+"/"); found != (tt.want != "") || found && got != tt.want {
				t.Errorf("Elsewhere = %q, %v; want %q", got, found, tt.want)
			}
		})
	}
}

// Work in a linked work tree changes its own folder and the shared folders; everything
// else there is kept.
func TestElsewhereKeeps(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, "git init -q main; git -C main commit -q --allow-empty -m x; git -C main worktree add -q ../ws; git -C main worktree add -q ../other; git -C main pack-refs --all; touch main/.git/config.worktree main/.git/index.lock")
	l, _ := Elsewhere(dir + "/ws")
	short := func(paths []string) string {
		return strings.ReplaceAll(fmt.Sprint(paths), dir+"/main/.git/", "")
	}
	if got, want := short(l.Work), "[logs objects refs worktrees/ws]"; got != want {
		t.Errorf("Work = %s, want %s", got, want)
	}
	for _, want := range []string{"HEAD", "config", "config.worktree", "hooks", "info", "worktrees", "worktrees/ws/commondir", "worktrees/ws/gitdir"} {
		if !strings.Contains(" "+strings.Trim(short(l.Keep), "[]")+" ", " "+want+" ") {
			t.Errorf("Keep = %s, want %s among them", short(l.Keep), want)
		}
	}
	for _, not := range []string{"packed-refs", "index.lock", "objects"} {
		if strings.Contains(short(l.Keep), not) {
			t.Errorf("Keep = %s, want no %s: Git replaces it", short(l.Keep), not)
		}
	}
}

// In a repository's own folder, its configuration is protected.
func TestOwnOfTheRepositoryItself(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HEAD", "config", "objects/x", "refs/x", "hooks/x"} {
		put(t, dir, name, "")
	}
	if got, want := fmt.Sprint(Own(dir)), fmt.Sprintf("[%s/config %[1]s/hooks]", dir); got != want {
		t.Errorf("Own = %s, want %s", got, want)
	}
}

func TestAbove(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "repo/.git/HEAD", "")
	put(t, dir, "repo/a/b/f", "")
	for name, want := range map[string]string{"repo": "", "repo/a/b": dir + "/repo", "repo/a": dir + "/repo"} {
		if got := Above(filepath.Join(dir, name)); got != want {
			t.Errorf("Above(%s) = %q, want %q", name, got, want)
		}
	}
}
