//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/service"
)

// Folders of the service of a package.
const (
	configFolder = "/etc/yaya"
	dataFolder   = service.SystemState + "/data"
)

// unit is the service that packages bring: the one that yaya service install --system writes, with
// the configuration in /etc. The first line of that, which says who wrote it, is left out.
func unit() []byte {
	s := service.Spec{
		System: true, User: "yaya", Program: "/usr/bin/yaya",
		Args: []string{"serve", "--no-open", "--data-dir", dataFolder, "--config-dir", configFolder},
	}
	_, text, _ := strings.Cut(s.Files("linux")[0].Text, "\n")
	return []byte(text)
}

// summary is the description of one line that every package manager shows.
const summary = "Gateway to MCP servers, and agents that use them"

// kind is a format of packages.
type kind struct {
	name string
	zsh  string // where completions of zsh are
	unit bool   // its systems have systemd
}

var kinds = []kind{
	{"deb", "/usr/share/zsh/vendor-completions/_yaya", true},
	{"rpm", "/usr/share/zsh/site-functions/_yaya", true},
	{"apk", "/usr/share/zsh/site-functions/_yaya", false},
}

// packages writes the packages of a target with nfpm.
func (b *builder) packages(ctx context.Context, t target, bin string, x extras) error {
	work := filepath.Join(b.out, "programs", t.os+"_"+t.arch)
	manual, err := gzipped(x.manual)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"yaya.1.gz": manual, "LICENSE": x.license, "bash": x.bash, "zsh": x.zsh, "fish": x.fish, "yaya.service": unit(),
	} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil { //nolint:forbidigo,gosec // a release is for everybody
			return err
		}
	}
	if err := b.copyScripts(work); err != nil {
		return err
	}
	for _, k := range kinds {
		config, err := json.MarshalIndent(b.nfpmConfig(t, k, bin, work), "", "  ")
		if err != nil {
			return err
		}
		file := filepath.Join(work, k.name+".json")
		if err := os.WriteFile(file, config, 0o600); err != nil { //nolint:forbidigo // in a folder of this program
			return err
		}
		if _, err := output(ctx, b.source, b.nfpm, "package", "--config", file, "--packager", k.name, "--target", filepath.Join(b.out, b.name(t, k.name))); err != nil {
			return err
		}
	}
	return nil
}

// copyScripts copies the scripts of packages with the time of the commit: nfpm writes the times of
// their files into apk.
func (b *builder) copyScripts(work string) error {
	for _, name := range []string{"config.toml", "user.sh", "postinstall.sh", "preremove.sh", "postremove.sh"} {
		data, err := os.ReadFile(filepath.Join(b.source, "deploy", "packages", name)) //nolint:forbidigo,gosec // a file of the sources
		if err != nil {
			return err
		}
		to := filepath.Join(work, name)
		if err := os.WriteFile(to, data, 0o644); err != nil { //nolint:forbidigo,gosec // a release is for everybody
			return err
		}
		if err := os.Chtimes(to, b.commit.at, b.commit.at); err != nil {
			return err
		}
	}
	return nil
}

// nfpmConfig is the configuration of nfpm, whose YAML is a superset of JSON.
func (b *builder) nfpmConfig(t target, k kind, bin, work string) map[string]any {
	at := b.commit.at.Format(time.RFC3339)
	file := func(from, to string, mode int, more map[string]any) map[string]any {
		info := map[string]any{"mode": mode, "mtime": at, "owner": "root", "group": "root"}
		out := map[string]any{"src": from, "dst": to, "file_info": info}
		for key, v := range more {
			out[key] = v
		}
		return out
	}
	contents := []map[string]any{
		file(bin, "/usr/bin/yaya", 0o755, nil),
		file(filepath.Join(work, "yaya.1.gz"), "/usr/share/man/man1/yaya.1.gz", 0o644, nil),
		file(filepath.Join(work, "LICENSE"), "/usr/share/doc/yaya/copyright", 0o644, nil),
		file(filepath.Join(work, "bash"), "/usr/share/bash-completion/completions/yaya", 0o644, nil),
		file(filepath.Join(work, "zsh"), k.zsh, 0o644, nil),
		file(filepath.Join(work, "fish"), "/usr/share/fish/vendor_completions.d/yaya.fish", 0o644, nil),
		file(filepath.Join(work, "config.toml"), configFolder+"/config.toml", 0o644, map[string]any{"type": "config|noreplace"}),
	}
	if k.unit {
		contents = append(contents, file(filepath.Join(work, "yaya.service"), "/usr/lib/systemd/system/yaya.service", 0o644, nil))
	}
	script := func(name string) string { return filepath.Join(work, name) }
	scripts := map[string]any{"preinstall": script("user.sh"), "postinstall": script("postinstall.sh"), "preremove": script("preremove.sh"), "postremove": script("postremove.sh")}
	release, pre := packageVersion(b.commit.version, b.commit.at)
	out := map[string]any{
		"name": "yaya", "arch": t.arch, "platform": t.os, "mtime": at,
		"version": release, "prerelease": pre, "release": "1",
		"maintainer": "The authors of yaya <yaya@localhost>", "homepage": home, "license": "MIT",
		"section": "net", "priority": "optional",
		"description": summary,
		"contents":    contents, "scripts": scripts,
		"rpm": map[string]any{"buildhost": "yaya", "group": "Applications/Internet", "summary": summary},
	}
	if k.name == "apk" { // it has scripts of its own for upgrades
		out["apk"] = map[string]any{"scripts": map[string]any{"preupgrade": script("user.sh"), "postupgrade": script("postinstall.sh")}}
	}
	return out
}

func gzipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}
