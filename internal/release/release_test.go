//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The same files make the same archive, with a fixed owner, time and order.
func TestArchivesAreReproducible(t *testing.T) {
	files := []entry{{"yaya", 0o755, []byte("program")}, {"man/yaya.1", 0o644, []byte("page")}}
	first, err := tarGz("yaya_1", files, at)
	if err != nil {
		t.Fatal(err)
	}
	second, err := tarGz("yaya_1", files, at.In(time.FixedZone("elsewhere", 3600)))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("tarGz made %d and %d bytes, %v, want the same archive", len(first), len(second), err)
	}
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := output(t.Context(), ".", "tar", "--utc", "--numeric-owner", "--full-time", "-tvzf", file)
	if err != nil {
		t.Skipf("a tar that shows times is needed: %v", err)
	}
	for _, want := range []string{"-rwxr-xr-x 0/0 ", "2026-01-02 03:04:05", "yaya_1/yaya\n-rw-r--r-- 0/0 "} {
		if !strings.Contains(list, want) {
			t.Errorf("tar lists %s, want %q", list, want)
		}
	}
}

// Two runs of nfpm, from sources with other times, make the same packages. It is there after
// make release-snapshot.
func TestPackagesAreReproducible(t *testing.T) {
	found, err := filepath.Glob("../../.cache/bin/nfpm-v*")
	if err != nil || len(found) == 0 {
		t.Skipf("nfpm is not here: %v", err)
	}
	nfpm, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	of := targets[0]
	make := func(modified time.Time) string {
		b := builder{commit: commit{version: "1.2.3-dev-abc", at: at}, source: t.TempDir(), out: t.TempDir(), nfpm: nfpm}
		scripts, work := filepath.Join(b.source, "deploy", "packages"), filepath.Join(b.out, "programs", "linux_amd64")
		if err := os.CopyFS(scripts, os.DirFS("../../deploy/packages")); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(scripts)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Chtimes(filepath.Join(scripts, f.Name()), modified, modified); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, "yaya"), []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := b.packages(t.Context(), of, filepath.Join(work, "yaya"), extras{manual: []byte("m")}); err != nil {
			t.Fatal(err)
		}
		if err := b.sums(); err != nil {
			t.Fatal(err)
		}
		return b.out
	}
	same, err := compare(make(at.AddDate(0, 1, 0)), make(at.AddDate(0, 2, 0)))
	if err != nil || len(same) != len(kinds) {
		t.Errorf("compare = %q, %v, want a package of each kind", same, err)
	}
}

// Versions of snapshots are older than their release, and newer than earlier snapshots, for dpkg.
func TestPackageVersion(t *testing.T) {
	for version, want := range map[string][2]string{
		"1.2.3":                     {"1.2.3", ""},
		"1.2.3-rc.1":                {"1.2.3", "rc1"},
		"1.2.3-dev":                 {"1.2.3", "pre20260102030405"},
		"1.2.3-dev-abc1234-dirty":   {"1.2.3", "pre20260102030405"},
		"1.2.3-dev-v1.2.2-4-g01234": {"1.2.3", "pre20260102030405"},
	} {
		release, pre := packageVersion(version, at)
		if got := [2]string{release, pre}; got != want {
			t.Errorf("packageVersion(%q) = %q, want %q", version, got, want)
		}
	}
}

// The SBOM has every module that go build has written into the program, with its digest.
func TestSBOM(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "ids")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/yaya-ai/yaya/examples/remote-device").CombinedOutput(); err != nil {
		t.Fatalf("build: %v, %s", err, out)
	}
	data, err := sbom(bin, commit{version: "1.2.3", at: at})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		BomFormat  string
		Metadata   struct{ Component component }
		Components []component
	}
	if err := json.Unmarshal(data, &doc); err != nil || doc.BomFormat != "CycloneDX" {
		t.Fatalf("the SBOM: %v, format %q, want JSON of CycloneDX", err, doc.BomFormat)
	}
	if got, want := doc.Metadata.Component.Purl, "pkg:golang/"+module+"@v1.2.3"; got != want {
		t.Errorf("the component is %q, want %q", got, want)
	}
	sums := 0
	for _, c := range doc.Components {
		if len(c.Properties) == 1 && strings.HasPrefix(c.Properties[0].Value, "h1:") {
			sums++
		}
	}
	if doc.Components[0].Name != "std" || sums != len(doc.Components)-1 || sums < 2 {
		t.Errorf("got %d components with %d digests, want std and modules with one each", len(doc.Components), sums)
	}
}

// The formula has the digest of each archive. Without all archives there is none.
func TestFormula(t *testing.T) {
	b := builder{out: t.TempDir(), commit: commit{version: "1.2.3", at: at}}
	unix := slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return t.os == "windows" })
	for i, of := range unix {
		if err := b.formula(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(b.out, "yaya.rb")); err == nil {
			t.Errorf("there is a formula with %d archives of %d", i, len(unix))
		}
		if err := b.write(b.name(of, "tar.gz"), []byte(of.String())); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.formula(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(b.out, "yaya.rb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range unix {
		sum, err := digest(filepath.Join(b.out, b.name(of, "tar.gz")))
		if err != nil {
			t.Fatal(err)
		}
		if want := "url \"" + home + "/releases/download/v1.2.3/" + b.name(of, "tar.gz") + "\"\n      sha256 \"" + sum + "\""; !bytes.Contains(text, []byte(want)) {
			t.Errorf("the formula is\n%s\nwant %s", text, want)
		}
	}
}

// Two builds are compared by the digests that they list: a difference, and nothing to compare, are
// errors.
func TestCompare(t *testing.T) {
	folder := func(files map[string]string) string {
		b := builder{out: t.TempDir()}
		for name, text := range files {
			if err := b.write(name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.sums(); err != nil {
			t.Fatal(err)
		}
		return b.out
	}
	first := folder(map[string]string{"a": "1", "b": "2"})
	for _, tc := range []struct {
		name   string
		second map[string]string
		want   string
	}{
		{"the same", map[string]string{"a": "1", "b": "2"}, ""},
		{"of fewer targets", map[string]string{"b": "2"}, ""},
		{"another content", map[string]string{"a": "1", "b": "3"}, "b was built twice"},
		{"a file more", map[string]string{"a": "1", "c": "3"}, "c was built twice"},
		{"nothing", nil, "lists no file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := compare(first, folder(tc.second))
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("compare = %v, want %q", err, tc.want)
			}
		})
	}
}

// The unit of packages starts the program where packages put it, with the settings in /etc.
func TestUnit(t *testing.T) {
	argv, err := execStart(unit())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(argv, " "), "/usr/bin/yaya serve --no-open --data-dir /var/lib/yaya/data --config-dir /etc/yaya"; got != want {
		t.Errorf("ExecStart is %q, want %q", got, want)
	}
	for _, want := range []string{"\nUser=yaya\n", "\nNoNewPrivileges=yes\n", "\nStateDirectory=yaya yaya/data"} {
		if !bytes.Contains(unit(), []byte(want)) {
			t.Errorf("the unit has no %q:\n%s", want, unit())
		}
	}
	if bytes.Contains(unit(), []byte("Written by")) {
		t.Error("the unit says that yaya service install wrote it")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	file := filepath.Join(t.TempDir(), "yaya.service")
	there := bytes.ReplaceAll(unit(), []byte("/usr/bin/yaya"), []byte("/bin/true"))
	if err := os.WriteFile(file, there, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || bytes.Contains(out, []byte("yaya.service:")) {
		t.Errorf("systemd-analyze verify = %v, %s", err, out)
	}
}

// Scripts of packages find an account with either tool, and are idempotent: shells accept them.
func TestScriptsAreShell(t *testing.T) {
	scripts, err := filepath.Glob("../../deploy/packages/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	scripts = append(scripts, "../../deploy/install.sh", "build.sh")
	if len(scripts) != 6 {
		t.Fatalf("found the scripts %q, want six", scripts)
	}
	for _, s := range scripts {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", s).CombinedOutput(); err != nil {
			t.Errorf("sh -n %s = %v, %s", s, err, out)
		}
		if shellcheck, err := exec.LookPath("shellcheck"); err == nil {
			if out, err := exec.CommandContext(t.Context(), shellcheck, s).CombinedOutput(); err != nil {
				t.Errorf("shellcheck %s = %v\n%s", s, err, out)
			}
		}
	}
}
