//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// tarGz is an archive with a folder. Owner, time and order are fixed, and gzip's header is empty.
func tarGz(folder string, files []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// extras are the files beside the program.
type extras struct {
	manual, license, guide []byte
	bash, zsh, fish        []byte
}

// readExtras has a yaya that runs here print them, and reads the others from the sources.
func readExtras(ctx context.Context, bin, source string) (x extras, err error) {
	for _, from := range []struct {
		to   *[]byte
		args []string
	}{
		{&x.manual, []string{"man"}},
		{&x.bash, []string{"completion", "bash"}},
		{&x.zsh, []string{"completion", "zsh"}},
		{&x.fish, []string{"completion", "fish"}},
	} {
		said, err := output(ctx, ".", bin, from.args...)
		if err != nil {
			return x, err
		}
		*from.to = []byte(said + "\n")
	}
	for _, from := range []struct {
		to   *[]byte
		path string
	}{
		{&x.license, "LICENSE"},
		{&x.guide, "docs/INSTALL.md"},
	} {
		if *from.to, err = os.ReadFile(filepath.Join(source, from.path)); err != nil { //nolint:forbidigo,gosec // files of the sources
			return x, err
		}
	}
	return x, nil
}

// entries are those for a system; completions and the manual are for shells of Unix.
func (x extras) entries(t target) []entry {
	if t.os == "windows" {
		return []entry{{"LICENSE", 0o644, x.license}, {"INSTALL.md", 0o644, x.guide}}
	}
	return []entry{
		{"LICENSE", 0o644, x.license},
		{"INSTALL.md", 0o644, x.guide},
		{"man/yaya.1", 0o644, x.manual},
		{"completions/yaya.bash", 0o644, x.bash},
		{"completions/_yaya", 0o644, x.zsh},
		{"completions/yaya.fish", 0o644, x.fish},
	}
}
