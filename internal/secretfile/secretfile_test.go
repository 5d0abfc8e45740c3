package secretfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/secretfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path  string
		limit       int
		want, wrong string
	}{
		{"a file", file, 4, "A=1\n", ""},
		{"a file that is too large", file, 3, "", file + ": it is larger than 3 bytes"},
		{"no file", filepath.Join(dir, "none"), 3, "", "no such file"},
		{"a folder", dir, 3, "", "neither a file nor a pipe"},
		{"nothing", os.DevNull, 3, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := secretfile.Read(t.Context(), c.path, c.limit)
			if string(got) != c.want || (err == nil) != (c.wrong == "") || (err != nil && !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %q, %v; want %q, %q", got, err, c.want, c.wrong)
			}
		})
	}
}

// Read returns the data of a pipe's writer, even in pieces; without a writer it ends with
// the context, and the error names the pipe.
func TestReadPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	hosttest.Pipe(t, pipe)
	if !secretfile.IsPipe(pipe) {
		t.Error("a pipe is not seen as one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // when there is a reader
		for _, text := range []string{"A=1\n", strings.Repeat("#", 8<<10), "\nB=2\n"} {
			if err == nil {
				_, err = f.WriteString(text)
			}
		}
		if err == nil {
			err = f.Close()
		}
		written <- err
	}()
	got, err := secretfile.Read(ctx, pipe, 64<<10)
	if want := "A=1\n" + strings.Repeat("#", 8<<10) + "\nB=2\n"; err != nil || string(got) != want {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(want))
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err = secretfile.Read(ctx, pipe, 64<<10); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), pipe) {
		t.Errorf("a pipe that nobody writes to: got %v, want that it was cancelled, and the path", err)
	}
}

// GF-4: a passphrase that others can read protects nothing from them.
func TestReadPrivate(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name  string
		mode  os.FileMode
		pipe  bool
		wrong string
	}{
		{"a private file", 0o600, false, ""},
		{"a file that is read alone", 0o400, false, ""},
		{"a file for everybody", 0o644, false, "chmod 600 "},
		{"a file for the group", 0o640, false, "chmod 600 "},
		{"a file that others may write", 0o602, false, "chmod 600 "},
		{"a pipe for everybody", 0o644, true, "chmod 600 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
			err := os.WriteFile(path, []byte("correct horse"), 0o600)
			if c.pipe {
				hosttest.NeedPipes(t)
				err = errors.Join(os.Remove(path), hosttest.MakePipe(path))
			}
			if err = errors.Join(err, os.Chmod(path, c.mode)); err != nil {
				t.Fatal(err)
			}
			got, err := secretfile.ReadPrivate(t.Context(), path, 64)
			if c.wrong == "" {
				if err != nil || string(got) != "correct horse" {
					t.Errorf("got %q, %v; want what is in it", got, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.wrong+path) || len(got) > 0 {
				t.Errorf("got %q, %v; want %q", got, err, c.wrong+path)
			}
		})
	}
}
