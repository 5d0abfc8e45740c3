//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// zipped is an archive without a folder, as Scoop and winget take it. Times and order are fixed.
func zipped(files []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(os.FileMode(f.mode)) //nolint:gosec // 0644 or 0755
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Names of the package managers of Windows.
const (
	wingetID      = "yaya-ai.yaya"
	wingetVersion = "1.6.0"
)

// windowsCPUs are the processors, with their names in manifests.
var windowsCPUs = []struct{ arch, scoop, winget string }{{"amd64", "64bit", "x64"}, {"arm64", "arm64", "arm64"}}

// forWindows writes the manifests of Scoop and winget, if there is a program for each processor.
func (b *builder) forWindows() error {
	type download struct {
		URL  string `json:"url"`
		Hash string `json:"hash"`
	}
	release := home + "/releases/download/v" + b.commit.version + "/"
	scoop := map[string]download{}
	var installers strings.Builder
	for _, cpu := range windowsCPUs {
		file := b.name(target{"windows", cpu.arch}, "zip")
		sum, err := digest(filepath.Join(b.out, file))
		if os.IsNotExist(err) {
			return nil // the manifests need both programs
		}
		if err != nil {
			return err
		}
		scoop[cpu.scoop] = download{release + file, sum}
		fmt.Fprintf(&installers, "- Architecture: %s\n  InstallerUrl: %s\n  InstallerSha256: %s\n", cpu.winget, release+file, strings.ToUpper(sum))
	}
	data, err := json.MarshalIndent(map[string]any{
		"version": b.commit.version, "description": summary, "homepage": home, "license": "MIT",
		"architecture": scoop, "bin": "yaya.exe", "checkver": "github",
	}, "", "    ")
	if err != nil {
		return err
	}
	if err := b.write("yaya.json", append(data, '\n')); err != nil {
		return err
	}
	head := fmt.Sprintf("PackageIdentifier: %s\nPackageVersion: %s\n", wingetID, b.commit.version)
	for _, m := range []struct{ name, kind, rest string }{
		{"", "version", "DefaultLocale: en-US\n"},
		{".installer", "installer", "InstallerType: zip\nNestedInstallerType: portable\nNestedInstallerFiles:\n- RelativeFilePath: yaya.exe\n  PortableCommandAlias: yaya\nMinimumOSVersion: 10.0.17763.0\nInstallers:\n" + installers.String()},
		{".locale.en-US", "defaultLocale", "PackageLocale: en-US\nPublisher: yaya-ai\nPublisherUrl: https://github.com/yaya-ai\nPackageName: yaya\nPackageUrl: " + home + "\nLicense: MIT\nLicenseUrl: " + home + "/blob/main/LICENSE\nShortDescription: " + summary + "\nMoniker: yaya\n"},
	} {
		schema := fmt.Sprintf("# yaml-language-server: $schema=https://aka.ms/winget-manifest.%s.%s.schema.json\n\n", m.kind, wingetVersion)
		text := schema + head + m.rest + fmt.Sprintf("ManifestType: %s\nManifestVersion: %s\n", m.kind, wingetVersion)
		if err := b.write(wingetID+m.name+".yaml", []byte(text)); err != nil {
			return err
		}
	}
	return nil
}
