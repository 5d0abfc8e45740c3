//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// site is a release on a server of this machine, and a machine that installs from it.
type site struct {
	t     *testing.T
	url   string
	mu    sync.Mutex        // held by the server, and by whoever changes what it has
	files map[string][]byte // by path
	cut   string            // this file ends too early
	path  string            // the programs of the machine
	home  string
}

const archiveName = "yaya_1.2.3_linux_amd64.tar.gz"

// newSite has a release whose yaya is a script, and a machine with Linux, amd64 and one downloader.
func newSite(t *testing.T, downloader string) *site {
	t.Helper()
	if _, err := exec.LookPath(downloader); err != nil {
		t.Skipf("%s is not here", downloader)
	}
	x := extras{manual: []byte("m"), license: []byte("l"), bash: []byte("b"), zsh: []byte("z"), fish: []byte("f")}
	program := entry{"yaya", 0o755, []byte("#!/bin/sh\necho yaya 1.2.3 \"$@\"\n")}
	archive, err := tarGz("yaya_1.2.3_linux_amd64", append([]entry{program}, x.entries(target{"linux", "amd64"})...), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(archive)
	s := &site{t: t, path: t.TempDir(), home: t.TempDir(), files: map[string][]byte{
		"/" + archiveName: archive,
		"/" + sumsFile:    []byte("0000000000000000000000000000000000000000000000000000000000000000  yaya_1.2.3_linux_arm64.tar.gz\n" + hex.EncodeToString(sum[:]) + "  " + archiveName + "\n"),
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		data, found := s.files[r.URL.Path]
		cut := s.cut == r.URL.Path
		s.mu.Unlock()
		if !found {
			http.NotFound(w, r)
			return
		}
		if cut {
			w.Header().Set("Content-Length", "1000000")
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	for _, name := range []string{"cat", "chmod", "cp", "cut", "grep", "gzip", "head", "mkdir", "mktemp", "mv", "rm", "rmdir", "sh", "sha256sum", "tar", downloader} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(s.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.uname("Linux", "x86_64")
	return s
}

func (s *site) uname(system, machine string) {
	s.t.Helper()
	text := "#!/bin/sh\ncase $1 in -s) echo " + system + ";; -m) echo " + machine + ";; esac\n"
	if err := os.WriteFile(filepath.Join(s.path, "uname"), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) install(env []string, args ...string) (string, error) {
	script, err := filepath.Abs("../../deploy/install.sh")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.path, "sh"), append([]string{script}, args...)...)
	cmd.Dir = s.home
	cmd.Env = append([]string{"PATH=" + s.path, "HOME=" + s.home, "YAYA_BASE_URL=" + s.url + "/", "TMPDIR=" + s.home}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// left are the files in the home folder.
func (s *site) left() (out []string) {
	err := filepath.WalkDir(s.home, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(s.home, path)
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// USE-7: the installer downloads, checks and installs with either downloader, again without harm,
// and takes everything away again.
func TestInstaller(t *testing.T) {
	for _, downloader := range []string{"curl", "wget"} {
		t.Run(downloader, func(t *testing.T) {
			s := newSite(t, downloader)
			bin := filepath.Join(s.home, ".local", "bin", "yaya")
			for _, which := range []string{"first", "second"} {
				out, err := s.install(nil)
				if err != nil || !strings.Contains(out, "yaya 1.2.3 version\n") || !strings.Contains(out, "Next: "+bin+" serve\n") {
					t.Fatalf("the %s installation: %v, %s; want the version and the path of the next command", which, err, out)
				}
			}
			if got := s.left(); len(got) != 6 {
				t.Errorf("got the files %q, want the program, its page, three completions and the licence", got)
			}
			// The program's folder is in PATH, and the version is named.
			out, err := s.install([]string{"PATH=" + filepath.Dir(bin) + ":" + s.path}, "--version", "v1.2.3")
			if err != nil || !strings.Contains(out, "Next: yaya serve\n") {
				t.Errorf("with the folder in PATH: %v, %s; want the command without a path", err, out)
			}
			if out, err := s.install([]string{"PREFIX=" + s.home + "/else where"}); err != nil || !strings.Contains(out, `"`+s.home+`/else where/bin/yaya" serve`) {
				t.Errorf("with PREFIX: %v, %s; want the program there", err, out)
			}
			for _, prefix := range []string{s.home + "/else where", s.home + "/.local"} {
				if out, err := s.install([]string{"PREFIX=" + prefix}, "--uninstall"); err != nil {
					t.Errorf("--uninstall: %v, %s", err, out)
				}
			}
			if out, err := s.install(nil, "--uninstall"); err != nil || !strings.Contains(out, "nothing to uninstall") {
				t.Errorf("a second --uninstall: %v, %s", err, out)
			}
			if got := s.left(); len(got) != 0 {
				t.Errorf("got the files %q after --uninstall, want none", got)
			}
		})
	}
}

// An installation that fails says why, with a remedy, and leaves no file: an earlier yaya stays.
func TestInstallerRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(s *site)
		env    []string
		args   []string
		want   string
	}{
		{"a changed file", func(s *site) { s.files["/"+archiveName] = append(s.files["/"+archiveName], 0) }, nil, nil, "nothing was installed"},
		{"a cut download", func(s *site) { s.cut = "/" + archiveName }, nil, nil, "check the network, and run this again"},
		{"a file that is missing", func(s *site) { delete(s.files, "/"+archiveName) }, nil, nil, "cannot download"},
		{"a server without a release", func(s *site) { delete(s.files, "/"+sumsFile) }, nil, nil, "checksums.txt: check the address"},
		{"digests that name a path", func(s *site) {
			s.files["/"+sumsFile] = []byte(strings.ReplaceAll(string(s.files["/"+sumsFile]), "yaya_1.2.3_linux_amd64", "yaya_/../x_linux_amd64"))
		}, nil, nil, "names no file for linux amd64"},
		{"a page instead of digests", func(s *site) { s.files["/"+sumsFile] = []byte("<html>sign in</html>") }, nil, nil, "names no file"},
		{"another version", nil, nil, []string{"--version", "9.9.9"}, "not version 9.9.9"},
		{"a processor that there is no yaya for", func(s *site) { s.uname("Linux", "riscv64") }, nil, nil, "no yaya for riscv64: build it with Go"},
		{"a system that there is no yaya for", func(s *site) { s.uname("SunOS", "x86_64") }, nil, nil, "no yaya for SunOS"},
		{"Windows", func(s *site) { s.uname("MINGW64_NT-10.0", "x86_64") }, nil, nil, "run this in WSL 2"},
		{"no downloader", func(s *site) { _ = os.Remove(filepath.Join(s.path, "curl")) }, nil, nil, "neither curl nor wget"},
		{"a program that does not run here", func(s *site) {
			data, err := tarGz("yaya_1.2.3_linux_amd64", []entry{{"yaya", 0o755, []byte("#!/bin/sh\nexit 1\n")}}, time.Unix(0, 0))
			if err != nil {
				s.t.Fatal(err)
			}
			sum := sha256.Sum256(data)
			s.files["/"+archiveName], s.files["/"+sumsFile] = data, []byte(hex.EncodeToString(sum[:])+"  "+archiveName+"\n")
		}, nil, nil, "does not run on this machine"},
		{"a key without minisign", nil, []string{"YAYA_MINISIGN_KEY=RWQ"}, nil, "minisign is not here"},
		{"a relative PREFIX", nil, []string{"PREFIX=here"}, nil, "name an absolute path"},
		{"an unknown flag", nil, nil, []string{"--nope"}, "usage:"},
		{"a version without its value", nil, nil, []string{"--version"}, "usage:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "curl")
			if tc.change != nil {
				s.mu.Lock()
				tc.change(s)
				s.mu.Unlock()
			}
			out, err := s.install(tc.env, tc.args...)
			if err == nil || !strings.Contains(out, tc.want) {
				t.Errorf("install.sh = %v, %s; want an error with %q", err, out, tc.want)
			}
			if got := s.left(); len(got) != 0 {
				t.Errorf("got the files %q, want none", got)
			}
		})
	}
}

// A signature is required once a key is given: the right key's, of the same digests.
func TestInstallerSignature(t *testing.T) {
	minisign, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("minisign is not here")
	}
	s := newSite(t, "curl")
	if err := os.Symlink(minisign, filepath.Join(s.path, "minisign")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keys := map[string]string{}
	for _, name := range []string{"ours", "other"} {
		if _, err := output(t.Context(), dir, minisign, "-G", "-W", "-s", filepath.Join(dir, name), "-p", filepath.Join(dir, name+".pub")); err != nil {
			t.Fatal(err)
		}
		public, err := os.ReadFile(filepath.Join(dir, name+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = strings.Split(string(public), "\n")[1]
	}
	if out, err := s.install([]string{"YAYA_MINISIGN_KEY=" + keys["ours"]}); err == nil || !strings.Contains(out, "is not signed") {
		t.Errorf("without a signature: %v, %s; want a refusal", err, out)
	}
	b := builder{out: dir, commit: commit{version: "1.2.3"}}
	if err := b.write(sumsFile, s.files["/"+sumsFile]); err != nil {
		t.Fatal(err)
	}
	t.Setenv("YAYA_RELEASE_MINISIGN_KEY", filepath.Join(dir, "ours"))
	if err := b.sign(t.Context()); err != nil {
		t.Fatal(err)
	}
	signature, err := os.ReadFile(filepath.Join(dir, sumsFile+".minisig"))
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.files["/"+sumsFile+".minisig"] = signature
	s.mu.Unlock()
	if out, err := s.install([]string{"YAYA_MINISIGN_KEY=" + keys["other"]}); err == nil || !strings.Contains(out, "is not that of YAYA_MINISIGN_KEY") || len(s.left()) > 0 {
		t.Errorf("with another key: %v, %s; want a refusal and no file", err, out)
	}
	if out, err := s.install([]string{"YAYA_MINISIGN_KEY=" + keys["ours"]}); err != nil {
		t.Errorf("with the key: %v, %s", err, out)
	}
}

// The installer downloads from where releases are.
func TestInstallerKnowsTheProject(t *testing.T) {
	script, err := os.ReadFile("../../deploy/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(mod), "module "+module+"\n") || !strings.Contains(string(script), "\nrepository="+home+"\n") {
		t.Errorf("go.mod, %s and deploy/install.sh name different projects", module)
	}
}
