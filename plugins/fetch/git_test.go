package fetch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a Git repository with a plugin.
type repository struct {
	w   *world
	dir string
}

func (w *world) repository() *repository {
	w.t.Helper()
	r := &repository{w, w.t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

func (r *repository) git(args ...string) string {
	r.w.t.Helper()
	cmd := exec.CommandContext(r.w.t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "HOME="+r.w.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) write(files map[string]string) {
	r.w.t.Helper()
	for name, text := range files {
		at := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			r.w.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o700); err != nil { //nolint:gosec // a program
			r.w.t.Fatal(err)
		}
	}
}

// commit commits files and returns the commit.
func (r *repository) commit(files map[string]string) string {
	r.w.t.Helper()
	r.write(files)
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

func (r *repository) source(ref string) string {
	if ref != "" {
		ref = "@" + ref
	}
	return "git+file://" + r.dir + ref
}

// Y-103: a tag, a branch and a commit are resolved to a commit; without one, the newest version is
// taken, or the default branch.
func TestGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "git")
	r := w.repository()
	first := r.commit(plugin("", map[string]string{"lib/a file.py": "1\r\n"}))
	if f := w.got(r.source("")); f.Resolved != "commit "+first || f.Source.Version != "" {
		t.Errorf("without tags: %+v, want the commit %s", f, first)
	}
	r.git("tag", "v1.9.0")
	second := r.commit(map[string]string{"lib/a file.py": "2\r\n"})
	r.git("tag", "-a", "-m", "x", "v1.10.0")
	third := r.commit(map[string]string{"lib/a file.py": "3\n", ".gitattributes": "*.py text eol=crlf\n"})
	for _, c := range []struct{ ref, commit, version, text string }{
		{"v1.9.0", first, "v1.9.0", "1\r\n"},
		{"v1.10.0", second, "v1.10.0", "2\r\n"},
		{"", second, "v1.10.0", "2\r\n"},
		{"main", third, "main", "3\n"},
		{first, first, first, "1\r\n"},
	} {
		f := w.got(r.source(c.ref))
		if f.Resolved != "commit "+c.commit || f.Source.Version != c.version {
			t.Errorf("%q is %s, %q; want the commit %s, version %q", c.ref, f.Source, f.Resolved, c.commit, c.version)
		}
		at := filepath.Join(f.Folder, "lib", "a file.py")
		if text, err := os.ReadFile(at); err != nil || string(text) != c.text {
			t.Errorf("%q has the file %q (%v), want %q as it is stored", c.ref, text, err, c.text)
		}
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the program of %q has %v (%v), want that it can be executed", c.ref, info.Mode(), err)
		}
		if _, err := os.Stat(filepath.Join(f.Folder, ".git")); err == nil {
			t.Errorf("%q brings its .git", c.ref)
		}
	}
	w.refused(r.source("v9"), "no tag or branch")
	w.refused(r.source(first[:12]), "40 digits")
	w.fails(r.source(strings.Repeat("0", 40)), "git failed")
	w.fails("git+file:///nowhere/at/all", "git failed")
}

// Neither the repository nor the user's settings have anything run, whatever the files ask for.
func TestGitRunsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "git")
	evil, check := w.marks()
	r := w.repository()
	r.commit(plugin("", map[string]string{
		".gitattributes": "* filter=evil diff=evil merge=evil export-subst ident\n",
		".lfsconfig":     "[lfs]\n\turl = ext::" + evil + "\n",
		".githooks/x":    "#!/bin/sh\n" + evil + "\n",
	}))
	r.git("tag", "v1.0.0")
	hooks := filepath.Join(w.home, "hooks")
	for _, dir := range []string{hooks, filepath.Join(r.dir, ".git", "hooks"), filepath.Join(w.home, "template", "hooks")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"post-checkout", "reference-transaction", "post-merge", "post-index-change", "pre-auto-gc", "fsmonitor-watchman", "update", "post-update", "pre-receive", "post-rewrite"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+evil+"\n"), 0o700); err != nil { //nolint:gosec // a hook
				t.Fatal(err)
			}
		}
	}
	user := fmt.Sprintf("[core]\n\thooksPath = %s\n\tfsmonitor = %s/fsmonitor-watchman\n\tpager = %s\n[init]\n\ttemplateDir = %s/template\n[filter \"evil\"]\n\tsmudge = %s\n\tprocess = %s\n\trequired = true\n[diff \"evil\"]\n\ttextconv = %s\n[protocol \"ext\"]\n\tallow = always\n", hooks, hooks, evil, w.home, evil, evil, evil)
	repo := fmt.Sprintf("[uploadpack]\n\tpackObjectsHook = %s\n[core]\n\tfsmonitor = %s/fsmonitor-watchman\n[filter \"evil\"]\n\tsmudge = %s\n", evil, hooks, evil)
	config := filepath.Join(r.dir, ".git", "config")
	was, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(w.home, ".gitconfig"): user, config: string(was) + repo} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range []string{"", "v1.0.0", "main"} {
		w.got(r.source(ref))
	}
	check()
}

func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "git")
	t.Run("a link", func(t *testing.T) {
		r := w.repository()
		r.write(plugin("", nil))
		if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "link")); err != nil {
			t.Fatal(err)
		}
		r.commit(nil)
		w.refused(r.source(""), "no links")
	})
	t.Run("a submodule", func(t *testing.T) {
		inner, r := w.repository(), w.repository()
		inner.commit(plugin("", nil))
		r.commit(plugin("", nil))
		r.git("submodule", "--quiet", "add", inner.dir, "sub")
		r.commit(nil)
		w.refused(r.source(""), "submodule")
	})
	t.Run("a name that leads outside", func(t *testing.T) {
		r := w.repository()
		r.commit(plugin("", nil))
		blob := r.git("hash-object", "-w", "plugin.toml")
		tree := filepath.Join(r.dir, "tree")
		if err := os.WriteFile(tree, []byte("100644 blob "+blob+"\t..\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "git mktree -z < tree")
		cmd.Dir = r.dir
		id, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		commit := r.git("commit-tree", "-m", "x", strings.TrimSpace(string(id)))
		r.git("tag", "evil", commit)
		w.fails(r.source("evil"), "")
	})
	t.Run("a repository that is too large", func(t *testing.T) {
		small := *w.c
		small.Bytes = 1 << 20
		r := w.repository()
		noise := make([]byte, 4<<20) // what cannot be packed
		rand.NewChaCha8([32]byte{}).Read(noise)
		r.commit(plugin("", map[string]string{"noise": string(noise)}))
		s, _, err := Parse(r.source(""))
		if err != nil {
			t.Fatal(err)
		}
		if f, err := small.Fetch(t.Context(), s); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
			t.Errorf("Fetch() = %+v, %v; want that it is too large", f, err)
		}
	})
}

// The list of a commit's files comes from the repository.
func TestGitList(t *testing.T) {
	t.Parallel()
	const id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	for entry, want := range map[string]string{
		"100644 blob " + id + "      5\ta\x00":                  "",
		"100644 blob " + id + "      5\t../a\x00":               "outside",
		"100644 blob " + id + "      5\t/a\x00":                 "outside",
		"100644 blob " + id + "      5\t..\x00":                 "outside",
		"120000 blob " + id + "      5\ta\x00":                  "no links",
		"160000 commit " + id + "       -\ta\x00":               "submodule",
		"040000 tree " + id + "       -\ta\x00":                 "mode",
		"100644 blob " + id + " 9999999999\ta\x00":              "MiB",
		"100644 blob " + id + " 99999999999999999999999\ta\x00": "range",
		"100644 blob " + id + " -1\ta\x00":                      "MiB",
		"100644 blob\x00":                                       "does not know",
		"":                                                      "does not know",
	} {
		files, err := gitList([]byte(entry))
		if want == "" && (err != nil || len(files) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("gitList(%q) = %v, %v; want %q", entry, files, err, want)
		}
	}
}
