//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The manifests of Scoop and winget have the digest of each archive. Without all archives there
// are none.
func TestWindowsManifests(t *testing.T) {
	b := builder{out: t.TempDir(), commit: commit{version: "1.2.3", at: at}}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(b.out, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	sums := map[string]string{}
	for _, cpu := range windowsCPUs {
		if err := b.forWindows(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(b.out, "yaya.json")); err == nil {
			t.Errorf("there is a manifest with %d archives of %d", len(sums), len(windowsCPUs))
		}
		file := b.name(target{"windows", cpu.arch}, "zip")
		if err := b.write(file, []byte(cpu.arch)); err != nil {
			t.Fatal(err)
		}
		sum, err := digest(filepath.Join(b.out, file))
		if err != nil {
			t.Fatal(err)
		}
		sums[home+"/releases/download/v1.2.3/"+file] = sum
	}
	if err := b.forWindows(); err != nil {
		t.Fatal(err)
	}
	var scoop struct {
		Version, Bin string
		Architecture map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal(read("yaya.json"), &scoop); err != nil {
		t.Fatal(err)
	}
	if scoop.Version != "1.2.3" || scoop.Bin != "yaya.exe" || len(scoop.Architecture) != len(sums) {
		t.Errorf("the manifest of Scoop is %+v, want version 1.2.3 with yaya.exe for %d processors", scoop, len(sums))
	}
	for cpu, d := range scoop.Architecture {
		if d.Hash == "" || sums[d.URL] != d.Hash {
			t.Errorf("Scoop's digest of %s (%s) is %q, want %q", cpu, d.URL, d.Hash, sums[d.URL])
		}
	}
	for name, kind := range map[string]string{wingetID + ".yaml": "version", wingetID + ".installer.yaml": "installer", wingetID + ".locale.en-US.yaml": "defaultLocale"} {
		var m struct {
			ID         string `yaml:"PackageIdentifier"`
			Version    string `yaml:"PackageVersion"`
			Kind       string `yaml:"ManifestType"`
			Schema     string `yaml:"ManifestVersion"`
			Installers []struct {
				URL string `yaml:"InstallerUrl"`
				Sum string `yaml:"InstallerSha256"`
			} `yaml:"Installers"`
		}
		if err := yaml.Unmarshal(read(name), &m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.ID != wingetID || m.Version != "1.2.3" || m.Kind != kind || m.Schema != wingetVersion || (len(m.Installers) == len(sums)) != (kind == "installer") {
			t.Errorf("%s is %+v, want kind %s of version 1.2.3", name, m, kind)
		}
		for _, i := range m.Installers {
			if i.Sum == "" || i.Sum != strings.ToUpper(sums[i.URL]) {
				t.Errorf("winget's digest of %s is %q, want %q", i.URL, i.Sum, strings.ToUpper(sums[i.URL]))
			}
		}
	}
}

// The archive for Windows has the program at its top, and is the same each time.
func TestZipped(t *testing.T) {
	of := target{"windows", "amd64"}
	files := append([]entry{{of.program(), 0o755, []byte("MZ")}}, extras{license: []byte("MIT")}.entries(of)...)
	one, err := zipped(files, at)
	if err != nil {
		t.Fatal(err)
	}
	two, err := zipped(files, at)
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("zipped() twice gives different bytes (%v), want the same", err)
	}
	z, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
	if err != nil || len(z.File) != 3 || z.File[0].Name != "yaya.exe" || !z.File[0].Modified.Equal(at.UTC()) {
		t.Fatalf("the archive is %v (%v), want yaya.exe first, of the commit's time", z, err)
	}
}
