package gitread_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/gitread"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

// SEC-2: nothing that a repository configures is run, whatever it is called.
func TestNothingRuns(t *testing.T) {
	for name, configure := range map[string]func(r *repo, run string){
		"filter": func(r *repo, run string) {
			for _, key := range []string{"clean", "smudge", "process"} {
				r.git("config", "filter.e."+key, run)
			}
			r.git("config", "filter.e.required", "true")
			r.write(".gitattributes", "* filter=e\n")
		},
		"diff driver": func(r *repo, run string) {
			r.git("config", "diff.e.textconv", run)
			r.git("config", "diff.e.command", run)
			r.write(".gitattributes", "* diff=e\n")
		},
		"merge driver":  func(r *repo, run string) { r.git("config", "merge.e.driver", run) },
		"monitor":       func(r *repo, run string) { r.git("config", "core.fsmonitor", run) },
		"external diff": func(r *repo, run string) { r.git("config", "diff.external", run) },
		"pager": func(r *repo, run string) {
			for _, key := range []string{"core.pager", "pager.status", "pager.diff"} {
				r.git("config", key, run)
			}
		},
		"ssh, helpers and editors": func(r *repo, run string) {
			for _, key := range []string{"core.sshCommand", "core.askPass", "credential.helper", "core.editor", "core.gitProxy", "gpg.program", "alias.status", "core.alternateRefsCommand", "uploadpack.packObjectsHook"} {
				r.git("config", key, run)
			}
		},
		"hooks": func(r *repo, run string) {
			for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"} {
				r.write(".git/hooks/"+hook, "#!/bin/sh\n"+run+"\n")
				r.must(os.Chmod(r.path(".git/hooks/"+hook), 0o755))
			}
		},
		"included": func(r *repo, run string) {
			r.write("evil", "[core]\n\tfsmonitor = \""+run+"\"\n")
			r.git("config", "include.path", r.path("evil"))
			r.git("config", "includeIf.gitdir:/.path", r.path("evil"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write("a.txt", "one\n")
			r.commit("first")
			canary := filepath.Join(t.TempDir(), "ran")
			configure(r, "touch "+canary)
			r.write("a.txt", "two\n")
			st, err := status(t, r.dir)
			if err != nil || !strings.Contains(strings.Join(st.Changed, "\n"), " M a.txt") {
				t.Errorf("ReadStatus = %+v, %v; want a change of a.txt", st, err)
			}
			if _, err := diff(t, r.dir); err != nil {
				t.Errorf("ReadDiff = %v", err)
			}
			if _, err := os.Stat(canary); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the configured command has run (stat: %v)", err)
			}
		})
	}
}

// SEC-2: nothing outside the workspace is read or reported, whatever leads there.
func TestNothingLeaks(t *testing.T) {
	const secret = "the secret of another repository"
	for name, lead := range map[string]func(r, other *repo){
		"worktree elsewhere": func(r, other *repo) {
			r.commit("first")
			r.git("config", "core.worktree", other.dir)
		},
		"bare, in the workspace itself": func(r, other *repo) {
			r.commit("first")
			entries, err := os.ReadDir(r.path(".git"))
			r.must(err)
			for _, e := range entries {
				r.must(os.Rename(r.path(".git/"+e.Name()), r.path(e.Name())))
			}
			r.must(os.Remove(r.path(".git")))
			r.write("config", "[core]\n\tbare = false\n\tworktree = "+other.dir+"\n")
		},
		"alternates": func(r, other *repo) {
			r.commit("first")
			r.write(".git/objects/info/alternates", other.path(".git/objects")+"\n")
			r.write(".git/refs/heads/main", other.git("rev-parse", "HEAD"))
		},
		"gitfile": func(r, other *repo) {
			r.must(os.RemoveAll(r.path(".git")))
			r.write(".git", "gitdir: "+other.path(".git")+"\n")
		},
		"gitfile to a work tree of others": func(r, other *repo) {
			other.git("worktree", "add", "-q", other.dir+"-wt", "HEAD")
			r.must(os.RemoveAll(r.path(".git")))
			r.write(".git", "gitdir: "+other.path(".git/worktrees/other-wt")+"\n")
		},
		"gitfile to a forged work tree": func(r, other *repo) {
			r.must(os.RemoveAll(r.path(".git")))
			r.write("fake/worktrees/x/gitdir", r.path(".git")+"\n")
			r.write("fake/worktrees/x/commondir", other.path(".git")+"\n")
			r.write("fake/worktrees/x/HEAD", "ref: refs/heads/main\n")
			r.write(".git", "gitdir: fake/worktrees/x\n")
		},
		"link of .git": func(r, other *repo) {
			r.must(os.RemoveAll(r.path(".git")))
			r.must(os.Symlink(other.path(".git"), r.path(".git")))
		},
		"link of objects": func(r, other *repo) { linkPart(r, other, "objects") },
		"link of refs":    func(r, other *repo) { linkPart(r, other, "refs") },
		"link of HEAD":    func(r, other *repo) { linkPart(r, other, "HEAD"); linkPart(r, other, "objects") },
		"link of index":   func(r, other *repo) { linkPart(r, other, "index") },
		"link of a folder": func(r, other *repo) {
			other.write("f.txt", secret+"\n")
			r.write("d/f.txt", "x")
			r.commit("first")
			r.must(os.RemoveAll(r.path("d")))
			r.must(os.Symlink(other.dir, r.path("d")))
		},
		"link of .gitignore": func(r, other *repo) {
			r.commit("first")
			r.must(os.Symlink(other.path("secret.txt"), r.path(".gitignore")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			other := &repo{t, filepath.Join(t.TempDir(), "other")}
			other.mkdir("")
			other.git("init", "-q", "-b", "main")
			other.write("secret.txt", "old\n")
			other.commit(secret)
			other.write("secret.txt", secret+"\n")
			other.commit(secret)
			other.write("secret.txt", "changed\n")
			r.write("mine.txt", "mine\n")
			lead(r, other)
			st, serr := status(t, r.dir)
			text, derr := diff(t, r.dir)
			for what, got := range map[string]string{"status": strings.Join(st.Changed, "\n"), "diff": text, "status's error": fmt.Sprint(serr), "diff's error": fmt.Sprint(derr)} {
				if strings.Contains(got, "secret") {
					t.Errorf("the %s tells what is outside: %s", what, got)
				}
			}
		})
	}
}

func linkPart(r, other *repo, part string) {
	r.t.Helper()
	r.must(os.RemoveAll(r.path(".git/" + part)))
	r.must(os.Symlink(other.path(".git/"+part), r.path(".git/"+part)))
}

// SEC-2: damaged, endless or far too large content is an error at once.
func TestDamaged(t *testing.T) {
	zip := func(header string, n int) string {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write([]byte(header + "\x00"))
		for part := make([]byte, 1<<20); n > 0; n -= len(part) {
			_, _ = z.Write(part)
		}
		_ = z.Close()
		return b.String()
	}
	for name, damage := range map[string]func(r *repo){
		"a pipe as index":       func(r *repo) { pipe(r, ".git/index") },
		"a pipe as HEAD":        func(r *repo) { pipe(r, ".git/HEAD") },
		"a pipe as packed-refs": func(r *repo) { r.must(os.Remove(r.path(".git/refs/heads/main"))); pipe(r, ".git/packed-refs") },
		"a gitfile that names a pipe": func(r *repo) {
			r.must(os.RemoveAll(r.path(".git")))
			pipe(r, "p")
			r.write(".git", "gitdir: p\n")
		},
		"a gitfile that names a pipe elsewhere": func(r *repo) {
			r.must(os.RemoveAll(r.path(".git")))
			away := &repo{r.t, r.t.TempDir()}
			pipe(away, "p")
			r.write(".git", "gitdir: "+away.path("p")+"\n")
		},
		"a pipe as pack folder": func(r *repo) {
			r.must(os.RemoveAll(r.path(".git/objects")))
			r.mkdir(".git/objects")
			pipe(r, ".git/objects/pack")
		},
		"an index of nothing": func(r *repo) { r.write(".git/index", "") },
		"an index of many":    func(r *repo) { r.write(".git/index", "DIRC\x00\x00\x00\x02\xff\xff\xff\xff"+strings.Repeat("x", 200)) },
		"a sparse index of 1 TiB": func(r *repo) {
			r.must(os.Truncate(r.path(".git/index"), 1<<40))
		},
		"references in a circle": func(r *repo) { r.write(".git/refs/heads/main", "ref: refs/heads/main\n") },
		"a reference elsewhere":  func(r *repo) { r.write(".git/HEAD", "ref: ../../../etc/passwd\n") },
		"a commit that is not there": func(r *repo) {
			r.write(".git/refs/heads/main", strings.Repeat("1", 40)+"\n")
		},
		"a commit that inflates": func(r *repo) {
			r.write(".git/refs/heads/main", strings.Repeat("1", 40)+"\n")
			r.write(".git/objects/11/"+strings.Repeat("1", 38), zip(fmt.Sprintf("commit %d", 1<<30), 200<<20))
		},
		"a commit that lies": func(r *repo) {
			r.write(".git/refs/heads/main", strings.Repeat("1", 40)+"\n")
			r.write(".git/objects/11/"+strings.Repeat("1", 38), zip("commit 9223372036854775807", 1))
		},
		"SHA-256": func(r *repo) { r.write(".git/config", "[extensions]\n\tobjectFormat = sha256\n") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write("a.txt", "one\n")
			r.commit("first")
			damage(r)
			if st, err := status(t, r.dir); err == nil {
				t.Errorf("ReadStatus = %+v, want an error", st)
			}
		})
	}
}

func pipe(r *repo, name string) {
	r.t.Helper()
	_ = os.Remove(r.path(name)) // it may not be there
	hosttest.Pipe(r.t, r.path(name))
}

// A FIFO among the files of the work tree is not waited for.
func TestPipeInTheWorkTree(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	pipe(r, "a.txt")
	pipe(r, ".gitignore")
	pipe(r, ".gitattributes")
	if _, err := status(t, r.dir); err != nil {
		t.Errorf("ReadStatus = %v", err)
	}
	if _, err := diff(t, r.dir); err != nil {
		t.Errorf("ReadDiff = %v", err)
	}
}

// With any flipped bits in a repository's own files, reading it ends without an
// unhandled panic, and writes nothing.
func TestFlippedBits(t *testing.T) {
	r := newRepo(t)
	for n := range 20 {
		r.write(fmt.Sprintf("d%d/f%d.txt", n%4, n), strings.Repeat(fmt.Sprintf("line %d\n", n), 50))
	}
	r.commit("first")
	r.write("d1/f1.txt", strings.Repeat("line 1\n", 49)+"other\n")
	r.commit("second")
	r.git("gc", "-q")
	r.write("d1/f5.txt", "staged\n")
	r.git("add", ".")
	r.write("d1/f1.txt", "changed\n")
	packs, err := filepath.Glob(r.path(".git/objects/pack/*"))
	r.must(err)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, file := range append(packs, r.path(".git/index"), r.path(".git/packed-refs"), r.path(".git/config"), r.path(".git/HEAD")) {
		r.must(os.Chmod(file, 0o600))
		whole, err := os.ReadFile(file)
		r.must(err)
		for range 40 {
			data := bytes.Clone(whole)
			for range 1 + rnd.IntN(4) {
				data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
			}
			if rnd.IntN(5) == 0 {
				data = data[:rnd.IntN(len(data))]
			}
			r.must(os.WriteFile(file, data, 0o600))
			_, serr := status(t, r.dir)
			_, derr := diff(t, r.dir)
			for _, err := range []error{serr, derr} {
				if err != nil && strings.Contains(err.Error(), "runtime error") {
					t.Fatalf("%s: got %v, want no runtime error", filepath.Base(file), err)
				}
			}
		}
		r.must(os.WriteFile(file, whole, 0o600))
	}
	r.same("restored")
}

// Reading ends when its caller no longer waits.
func TestCancelled(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gitread.ReadStatus(ctx, open(t, r.dir), r.dir); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadStatus = %v, want %v", err, context.Canceled)
	}
}

// Nothing is written: no lock, no refreshed index.
func TestNothingIsWritten(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("first")
	r.write("a.txt", "two\n")
	list := func() string {
		var b strings.Builder
		r.must(filepath.WalkDir(r.dir, func(p string, d fs.DirEntry, err error) error {
			r.must(err)
			info, err := d.Info()
			r.must(err)
			fmt.Fprintln(&b, p, info.Size(), info.ModTime())
			return nil
		}))
		return b.String()
	}
	before := list()
	_, serr := status(t, r.dir)
	_, derr := diff(t, r.dir)
	if after := list(); after != before || serr != nil || derr != nil {
		t.Errorf("got %v, %v and\n%s\nwant\n%s", serr, derr, after, before)
	}
}
