package logfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/logfile"
)

func open(t *testing.T, path string, limit int64) *logfile.File {
	t.Helper()
	l, err := logfile.Open(path, limit)
	if err != nil {
		t.Fatalf("Open(%s) = %v", path, err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return l
}

// OP-60: the log files together stay within their bound, no line is torn
// or lost before the oldest file is removed, and nobody else can read them.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "yaya.log")
	l := open(t, path, 1000)
	line := []byte(`{"level":"warn","message":"` + strings.Repeat("x", 60) + `"}` + "\n")
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				if n, err := l.Write(line); err != nil || n != len(line) {
					t.Errorf("Write() = %d, %v", n, err)
				}
			}
		})
	}
	writers.Wait()
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) != logfile.Kept+1 {
		t.Fatalf("got files %v, %v, want %d", names, err, logfile.Kept+1)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 1000 || len(data)%len(line) != 0 || len(data) == 0 {
			t.Errorf("%s has %d bytes, want whole lines of %d, 1000 at most", name, len(data), len(line))
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", name, info.Mode(), err)
		}
	}
}

// OP-60: a log goes on where it ended.
func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "yaya.log")
	const line = `{"level":"warn"}` + "\n"
	for range 3 {
		l := open(t, path, 1000)
		if _, err := l.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Write([]byte(line)); err == nil {
			t.Error("Write() after Close() = nil, want an error")
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != line+line+line {
		t.Errorf("got %q, %v, want three lines", data, err)
	}
}

// OP-61: a path in a setting cannot make yaya append to a file that is not its log.
func TestOnlyLogs(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("profile"), []byte("export A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("elsewhere"), at("link")); err != nil {
		t.Fatal(err)
	}
	hosttest.Pipe(t, at("fifo"))
	for path, want := range map[string]string{
		at("profile"): "not a log", at("link"): "symbolic links", at("fifo"): "not a regular file", dir: "is a directory",
		"yaya.log": "must be absolute", at("no/yaya.log"): "no such file",
	} {
		l, err := logfile.Open(path, 1000)
		if err == nil {
			t.Errorf("Open(%s) = nil, want %q", path, want)
			_ = l.Close()
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) = %v, want %q", path, err, want)
		}
	}
	if data, err := os.ReadFile(at("profile")); err != nil || string(data) != "export A=1\n" {
		t.Errorf("the file has %q, %v", data, err)
	}
}

// OP-60: lines go to the file that has the path: one that was renamed, removed or cut, as by
// logrotate, gets no more after a second, or after Reopen at once.
func TestReplaced(t *testing.T) {
	const line = `{"level":"warn"}` + "\n"
	for name, replace := range map[string]func(path string) error{
		"renamed": func(path string) error { return os.Rename(path, path+".old") },
		"removed": os.Remove,
		"renamed, with a new one": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o640))
		},
		"cut": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, reopen := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "yaya.log")
					l := open(t, path, 1000)
					write := func() {
						if _, err := l.Write([]byte(line)); err != nil {
							t.Errorf("Write() = %v", err)
						}
					}
					write()
					if err := replace(path); err != nil {
						t.Fatal(err)
					}
					if reopen {
						if err := l.Reopen(); err != nil {
							t.Errorf("Reopen() = %v", err)
						}
					} else {
						time.Sleep(2 * time.Second)
					}
					write()
					if data, err := os.ReadFile(path); err != nil || string(data) != line {
						t.Errorf("reopen %v: the file at the path has %q, %v, want one line", reopen, data, err)
					}
				})
			}
		})
	}
}

// OP-60, OP-61: a file that cannot be opened again takes no lines until it can.
func TestReplacedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const line = `{"level":"warn"}` + "\n"
		path := filepath.Join(t.TempDir(), "yaya.log")
		l := open(t, path, 1000)
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("mine\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := l.Reopen(); err == nil {
			t.Error("Reopen() = nil, want an error about the other file")
		}
		for range 3 {
			if _, err := l.Write([]byte(line)); err == nil || !strings.Contains(err.Error(), "not a log") {
				t.Errorf("Write() = %v, want the reason why there is no log", err)
			}
			time.Sleep(2 * time.Second)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "mine\n" {
			t.Errorf("the other file has %q, %v, want it unchanged", data, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Write([]byte(line)); err != nil {
			t.Errorf("Write() once it is gone = %v", err)
		}
		if err := l.Reopen(); err != nil {
			t.Errorf("Reopen() = %v", err)
		}
	})
}

// OP-61: Check says what Open would say, and creates nothing.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"log": `{"level":"warn"}` + "\n", "profile": "export A=1\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{at("log"): "", at("new"): "", at("profile"): "not a log", at("no/yaya.log"): "no such file", at("log/x"): "not a directory", dir: "is a directory", "x": "absolute"} {
		err := logfile.Check(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%s) = %v, want %q", path, err, want)
		}
	}
	if _, err := os.Stat(at("new")); err == nil {
		t.Error("Check created the file")
	}
}
