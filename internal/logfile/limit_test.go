//go:build unix

package logfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// OP-60: while no next file can be opened, lines go elsewhere, and no full file is pushed out.
func TestRotationWithoutTheNextFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "yaya.log")
	l := open(t, path, 40)
	line := func(n int) []byte { return fmt.Appendf(nil, `{"level":"warn","n":%06d}`+"\n", n) }
	for n := range 4 {
		if _, err := l.Write(line(n)); err != nil {
			t.Fatal(err)
		}
	}
	all := func() (out string) {
		for _, name := range []string{path, path + ".1", path + ".2", path + ".3"} {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Errorf("ReadFile(%s) = %v, want all files kept", name, err)
			}
			out += string(data)
		}
		return out
	}
	before := all()
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: had.Max}); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		if _, err := l.Write(line(10 + n)); !errors.Is(err, unix.EMFILE) {
			t.Errorf("Write() = %v, want %v", err, unix.EMFILE)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if after := all(); after != before {
		t.Errorf("the files have\n%s\nwant\n%s", after, before)
	}
	if _, err := l.Write(line(20)); err != nil {
		t.Errorf("Write() with descriptors = %v", err)
	}
}
