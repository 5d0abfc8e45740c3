package gitread_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/gitread"
)

// repo is a repository of the test's own, made by git itself.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	r := &repo{t, filepath.Join(t.TempDir(), "ws")}
	r.mkdir("")
	r.git("init", "-q", "-b", "main")
	return r
}

func (r *repo) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r *repo) mkdir(name string) {
	r.t.Helper()
	if err := os.MkdirAll(r.path(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	r.mkdir(filepath.Dir(name))
	if err := os.WriteFile(r.path(name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// git runs git in the repository, without anybody's configuration.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (r *repo) try(args ...string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.quotePath=false", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *repo) commit(message string) {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-qm", message, "--allow-empty")
}

// open returns the folder as the package is given it.
func open(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func status(t *testing.T, dir string) (gitread.Status, error) {
	t.Helper()
	return gitread.ReadStatus(t.Context(), open(t, dir), dir)
}

func diff(t *testing.T, dir string) (string, error) {
	t.Helper()
	return gitread.ReadDiff(t.Context(), open(t, dir), dir, 1<<20)
}

// same compares the status with git's own.
func (r *repo) same(what string) {
	r.t.Helper()
	st, err := status(r.t, r.dir)
	if err != nil {
		r.t.Errorf("%s: ReadStatus = %v", what, err)
		return
	}
	got := "## " + st.Branch + "\n" + strings.Join(st.Changed, "\n")
	want := r.git("status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=all")
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		r.t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// differs checks that the difference, applied to the commit, gives the work tree.
func (r *repo) differs(what string) {
	r.t.Helper()
	text, err := diff(r.t, r.dir)
	if err != nil {
		r.t.Errorf("%s: ReadDiff = %v", what, err)
		return
	}
	other := &repo{r.t, filepath.Join(r.t.TempDir(), "other")}
	r.git("worktree", "add", "-q", "--detach", other.dir, "HEAD")
	defer r.git("worktree", "remove", "--force", other.dir)
	if text != "" {
		file := filepath.Join(r.t.TempDir(), "d.patch")
		r.must(os.WriteFile(file, []byte(text), 0o600))
		if out, err := other.try("apply", "--index", file); err != nil {
			r.t.Errorf("%s: the difference does not apply: %s\n%s", what, out, text)
			return
		}
	}
	// The names and contents that git itself finds against the commit have to be these.
	got := other.git("diff", "--cached", "--no-renames", "--raw", "--abbrev=40", "HEAD")
	r.git("add", "-u")
	want := r.git("diff", "--cached", "--no-renames", "--raw", "--abbrev=40", "HEAD")
	if got != want {
		r.t.Errorf("%s: the difference makes\n%s\nwant\n%s\nof\n%s", what, got, want, text)
	}
}

func lines(rnd *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "line %x\n", rnd.Uint64())
	}
	return b.String()
}

// The status of random work trees is that of git itself, and the difference leads from
// the commit to the work tree.
func TestOracle(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			r := newRepo(t)
			var files []string
			for n := range 30 {
				name := []string{"a.txt", "src/b.go", "src/deep/c.txt", "docs/Grüße %d.md", "docs/with space.txt", "z/\"quoted\".txt", "z/日本.txt"}[n%7]
				name = fmt.Sprintf("%d/", n%5) + strings.ReplaceAll(name, "%d", "x")
				if n%11 == 0 {
					name = fmt.Sprintf("top%d.txt", n)
				}
				if !slices.Contains(files, name) {
					files = append(files, name)
				}
				r.write(name, lines(rnd, 10+rnd.IntN(30)))
			}
			r.write(".gitignore", "*.log\n/build/\nnode_modules\n!keep.log\n")
			r.write("1/.gitignore", "secret*\n!secret.ok\n")
			r.must(os.Symlink("top0.txt", r.path("link")))
			r.commit("first")
			if seed%2 == 0 {
				r.git("gc", "-q")
			}
			if seed%3 == 0 {
				r.git("update-index", "--index-version", "4")
			}
			for range 12 {
				f := files[rnd.IntN(len(files))]
				info, err := os.Lstat(r.path(f))
				switch rnd.IntN(12) {
				case 0, 1, 2:
					r.write(f, lines(rnd, 1+rnd.IntN(40)))
				case 3:
					if data, err := os.ReadFile(r.path(f)); err == nil {
						r.write(f, string(data)+"one more\n")
					}
				case 4:
					if err == nil {
						r.must(os.Remove(r.path(f)))
					}
				case 5:
					_, _ = r.try("rm", "-q", "--cached", f) // it may be gone
				case 6:
					if err == nil {
						to := fmt.Sprintf("moved/%d.txt", rnd.Uint32())
						r.mkdir("moved")
						if _, err := r.try("mv", f, to); err == nil && rnd.IntN(2) == 0 {
							if data, err := os.ReadFile(r.path(to)); err == nil { // else it is a link
								r.write(to, "a new first line\n"+string(data))
								r.git("add", to)
							}
						}
					}
				case 7:
					if err == nil && info.Mode().IsRegular() {
						r.must(os.Chmod(r.path(f), 0o755))
					}
				case 8:
					r.write(fmt.Sprintf("new/%d/x.txt", rnd.IntN(3)), "new\n")
					r.write("1/secret1", "x")
					r.write("1/secret.ok", "x")
					r.write("build/out", "x")
					r.write("2/node_modules/x/y", "x")
					r.write("only.log/..x/z.log", "x")
				case 9:
					r.git("add", "-A")
				case 10:
					if err == nil {
						r.must(os.Remove(r.path(f)))
						r.must(os.Symlink("nowhere", r.path(f)))
					}
				case 11:
					r.write(f, "no newline at the end")
					r.git("add", "-N", ".")
				}
			}
			r.same("status")
			r.differs("diff")
		})
	}
}

// A difference whose text cannot be applied says what it is, as git says it.
func TestDiffTexts(t *testing.T) {
	r := newRepo(t)
	r.write("pic", "a\x00b\n")
	r.write("same", "a\x00b\n")
	r.write("gone", "a\x00b\n")
	r.write(".gitattributes", "*.f filter=x\n*.crlf text\n*.raw -text\n")
	r.write("x.f", "one\n")
	r.write("x.crlf", "one\n")
	r.write("x.raw", "one\n")
	r.write("tab\there", "one\n")
	r.commit("first")
	r.write("pic", "c\x00d\n")
	r.must(os.Chmod(r.path("same"), 0o755))
	r.must(os.Remove(r.path("gone")))
	r.write("x.f", "two\n")
	r.write("x.crlf", "one\r\n")
	r.write("x.raw", "one\r\n")
	r.write("tab\there", "two\n")
	got, err := diff(t, r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Binary files a/pic and b/pic differ\n",
		"Binary files a/gone and /dev/null differ\n",
		"old mode 100644\nnew mode 100755\n",
		"x.f is stored through a filter, which is not run",
		"+++ b/x.raw\n@@ -1,1 +1,1 @@\n-one\n+one\r\n",
		"--- \"a/tab\\there\"\n+++ \"b/tab\\there\"\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the difference lacks %q:\n%s", want, got)
		}
	}
	for _, bad := range []string{"x.crlf", "a/same and"} {
		if strings.Contains(got, bad) {
			t.Errorf("the difference has %q:\n%s", bad, got)
		}
	}
}

// Each state that a repository can be in is reported as git reports it.
func TestStates(t *testing.T) {
	base := func(r *repo) {
		r.write("a.txt", "one\n")
		r.write("sub/b.txt", "two\n")
		r.commit("first")
	}
	for name, make := range map[string]func(r *repo){
		"unborn":           func(*repo) {},
		"unborn and added": func(r *repo) { r.write("a", "x"); r.git("add", "a"); r.write("b", "y") },
		"clean":            base,
		"detached":         func(r *repo) { base(r); r.git("checkout", "-q", "--detach") },
		"packed":           func(r *repo) { base(r); r.git("gc", "-q"); r.git("pack-refs", "--all"); r.write("a.txt", "x") },
		"tag": func(r *repo) {
			base(r)
			r.git("tag", "-a", "v1", "-m", "x")
			r.git("checkout", "-q", "v1")
		},
		"touched": func(r *repo) {
			base(r)
			later := time.Now().Add(time.Hour)
			r.must(os.Chtimes(r.path("a.txt"), later, later))
		},
		"same size, at once": func(r *repo) { base(r); r.write("a.txt", "eno\n") },
		"conflict": func(r *repo) {
			base(r)
			r.git("checkout", "-qb", "other")
			r.write("a.txt", "theirs\n")
			r.git("rm", "-q", "sub/b.txt")
			r.commit("other")
			r.git("checkout", "-q", "main")
			r.write("a.txt", "ours\n")
			r.write("sub/b.txt", "ours, too\n")
			r.commit("ours")
			_, _ = r.try("merge", "other") // conflicts
		},
		"follows": func(r *repo) {
			base(r)
			r.git("branch", "up")
			r.git("branch", "-u", "up")
			r.commit("ahead")
			r.commit("ahead again")
			r.git("checkout", "-q", "up")
			r.git("commit", "-q", "--allow-empty", "-m", "behind")
			r.git("checkout", "-q", "main")
		},
		"follows what is gone": func(r *repo) {
			base(r)
			r.git("branch", "up")
			r.git("branch", "-u", "up")
			r.git("branch", "-D", "up")
		},
		"clone": func(r *repo) {
			base(r)
			to := r.dir + "-clone"
			r.git("clone", "-q", "file://"+r.dir, to)
			r.commit("more")
			r.dir = to
			r.git("fetch", "-q")
		},
		"shallow": func(r *repo) {
			base(r)
			r.commit("second")
			to := r.dir + "-clone"
			r.git("clone", "-q", "--depth=1", "file://"+r.dir, to)
			r.dir = to
			r.commit("third")
		},
		"work tree": func(r *repo) {
			base(r)
			r.git("worktree", "add", "-q", r.dir+"-wt", "-b", "wt")
			r.dir += "-wt"
			r.write("a.txt", "changed\n")
			r.write("new", "x")
		},
		"work tree, moved and repaired": func(r *repo) {
			base(r)
			r.git("worktree", "add", "-q", r.dir+"-wt", "-b", "wt")
			r.git("worktree", "move", r.dir+"-wt", r.dir+"-wt2")
			r.dir += "-wt2"
		},
		"submodule": func(r *repo) {
			base(r)
			sub := &repo{r.t, r.dir + "-sub"}
			r.git("init", "-q", sub.dir)
			sub.write("s", "x")
			sub.commit("sub")
			r.git("submodule", "add", "-q", sub.dir, "module")
			r.commit("with it")
			r.write("module/s", "changed")
			r.write("module/new", "x")
		},
		"in a submodule": func(r *repo) {
			base(r)
			sub := &repo{r.t, r.dir + "-sub"}
			r.git("init", "-q", sub.dir)
			sub.write("s", "x")
			sub.commit("sub")
			r.git("submodule", "add", "-q", sub.dir, "module")
			r.dir = r.path("module")
			r.write("s", "changed")
			r.write("new", "x")
		},
		"repository inside": func(r *repo) {
			base(r)
			r.git("init", "-q", r.path("inner"))
			(&repo{r.t, r.path("inner")}).commit("x")
		},
		"sparse": func(r *repo) {
			base(r)
			r.write("keep/x", "x")
			r.commit("more")
			r.git("sparse-checkout", "set", "--cone", "keep")
			r.write("keep/x", "y")
		},
		"skipped and there": func(r *repo) {
			base(r)
			r.git("update-index", "--skip-worktree", "a.txt")
			r.git("update-index", "--assume-unchanged", "sub/b.txt")
			r.write("sub/b.txt", "changed")
		},
		"excluded": func(r *repo) {
			base(r)
			r.write(".git/info/exclude", "# comment\nx*\n!xx\n\\#y\n")
			for _, f := range []string{"x1", "xx", "#y", "z"} {
				r.write(f, "x")
			}
		},
		"file becomes folder": func(r *repo) { base(r); r.must(os.Remove(r.path("a.txt"))); r.write("a.txt/x", "x") },
		"folder becomes file": func(r *repo) { base(r); r.must(os.RemoveAll(r.path("sub"))); r.write("sub", "x") },
		"folder becomes link": func(r *repo) {
			base(r)
			r.must(os.Rename(r.path("sub"), r.path("real")))
			r.must(os.Symlink("real", r.path("sub")))
		},
		"staged type": func(r *repo) {
			base(r)
			r.must(os.Remove(r.path("a.txt")))
			r.must(os.Symlink("x", r.path("a.txt")))
			r.git("add", "-A")
		},
		"removed and there": func(r *repo) { base(r); r.git("rm", "-q", "--cached", "a.txt") },
		"added and gone": func(r *repo) {
			base(r)
			r.write("c", "x")
			r.git("add", "c")
			r.must(os.Remove(r.path("c")))
		},
		"intended": func(r *repo) { base(r); r.write("c", "x"); r.git("add", "-N", "c") },
		"no file modes": func(r *repo) {
			base(r)
			r.git("config", "core.fileMode", "false")
			r.must(os.Chmod(r.path("a.txt"), 0o755))
		},
		"autocrlf": func(r *repo) {
			base(r)
			r.git("config", "core.autocrlf", "true")
			r.write("a.txt", "one\r\n")
			r.write("sub/b.txt", "three\r\n")
		},
		"no autocrlf": func(r *repo) { base(r); r.write("a.txt", "one\r\n") },
		"eol attribute": func(r *repo) {
			base(r)
			r.write(".gitattributes", "*.txt text eol=crlf\n/sub/*.txt -text\n")
			r.commit("attributes")
			r.write("a.txt", "one\r\n")
			r.write("sub/b.txt", "two\r\n")
		},
		"empty folders": func(r *repo) { base(r); r.mkdir("empty/er"); r.mkdir("sub/empty") },
		"ignored": func(r *repo) {
			base(r)
			r.write(".gitignore", "*.o\nout/\n/top\na/**/z\n**/deep\nfoo/*\n!foo/keep\n[ab]?c\nsp\\ ace \nx/**\n")
			for _, f := range []string{"x.o", "sub/y.o", "out/f", "sub/out/f", "top", "sub/top", "a/z", "a/b/c/z", "a/y", "q/deep", "deep/x", "foo/no", "foo/keep", "axc", "bxc", "cxc", "sp ace", "x/y", "sub/out2", "new/x.o"} {
				r.write(f, "x")
			}
		},
		"tracked in an ignored folder": func(r *repo) {
			r.write("out/a", "x")
			base(r)
			r.write(".gitignore", "out/\n")
			r.write("out/b", "x")
			r.write("out/a", "y")
		},
		"control characters": func(r *repo) {
			base(r)
			r.write("tab\there", "x")
			r.write("new\nline", "x")
			r.write("back\\slash", "x")
			r.write("quo\"te", "x")
		},
		"renames": func(r *repo) {
			base(r)
			for n := range 8 {
				r.write(fmt.Sprintf("r%d", n), strings.Repeat(fmt.Sprintf("line %d of many lines\n", n), 5)+fmt.Sprintf("%d\n", n*7919))
			}
			r.commit("more")
			for n := range 4 {
				r.git("mv", fmt.Sprintf("r%d", n), fmt.Sprintf("sub/s%d", n))
			}
			r.write("sub/s1", "changed later\n")
			r.must(os.Remove(r.path("sub/s2")))
		},
		"many packs": func(r *repo) {
			for n := range 5 {
				r.write("f", strings.Repeat("same\n", 1000)+fmt.Sprint(n))
				r.commit(fmt.Sprint(n))
				r.git("repack", "-q", "-d")
			}
			r.write("f", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			make(r)
			r.same("status")
		})
	}
}

// The status of a workspace below a repository's root covers the workspace alone.
func TestSubfolder(t *testing.T) {
	r := newRepo(t)
	r.write(".gitignore", "*.log\n")
	r.write("other/secret.txt", "old secret\n")
	r.write("services/api/main.go", "package main\n")
	r.write("services/api/deep/x.go", "package x\n")
	r.commit("first")
	r.write("other/secret.txt", "new secret\n")
	r.write("other/untracked", "x")
	r.write("services/api/main.go", "package api\n")
	r.write("services/api/new.go", "x")
	r.write("services/api/x.log", "x")
	r.git("add", "other")
	sub := r.path("services/api")
	st, err := status(t, sub)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{" M main.go", "?? new.go"}; st.Branch != "main" || !slices.Equal(st.Changed, want) {
		t.Errorf("ReadStatus = %+v, want main and %q", st, want)
	}
	text, err := diff(t, sub)
	if err != nil || strings.Contains(text, "secret") || !strings.Contains(text, "-package main\n+package api\n") {
		t.Errorf("ReadDiff = %v\n%s", err, text)
	}
}
