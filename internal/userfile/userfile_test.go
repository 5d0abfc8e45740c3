package userfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/userfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err == nil {
			err = f.Truncate(size)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	hosttest.Pipe(t, pipe)
	for name, c := range map[string]struct {
		path  string
		size  int
		found bool
		err   string
	}{
		"a file":                    {file("small", 5), 5, true, ""},
		"an empty file":             {file("empty", 0), 0, true, ""},
		"as large as it may be":     {file("full", userfile.Max), userfile.Max, true, ""},
		"larger":                    {file("huge", userfile.Max+1), 0, false, "is larger than"},
		"no file":                   {filepath.Join(dir, "none"), 0, false, ""},
		"a folder":                  {dir, 0, false, "is not a regular file"},
		"a pipe that nobody writes": {pipe, 0, false, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			data, found, err := userfile.Read(c.path)
			if len(data) != c.size || found != c.found || (err == nil) != (c.err == "") {
				t.Errorf("Read() = %d bytes, %t, %v, want %d, %t, %q", len(data), found, err, c.size, c.found, c.err)
			}
			if err != nil && !strings.Contains(err.Error(), c.path+" "+c.err) {
				t.Errorf("Read() = %v, want %q", err, c.err)
			}
		})
	}
}
