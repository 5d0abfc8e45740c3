package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// On a full disk, commands that write settings, secrets and servers name the folder, and the files
// stay as they were.
func TestCommandsOnAFullDisk(t *testing.T) {
	b := newBox(t)
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	data, config := filepath.Join(disk, "data"), filepath.Join(disk, "config")
	run := func(args ...string) (string, error) {
		return b.run(append([]string{"--data-dir", data, "--config-dir", config}, args...)...)
	}
	value := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(value, []byte("q7Zt-0pLm-33xV"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"config", "set", "log.level", "info"}, {"secret", "set", "a", "--file", value}, {"mcp", "add", "x", "true"}, {"provider", "add", "near", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"}} {
		if out, err := run(args...); err != nil {
			t.Fatalf("%v: %v, %s", args, err, out)
		}
	}
	rest, err := os.Create(filepath.Join(disk, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = rest.Write(make([]byte, 4096))
	}
	if err := rest.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		args []string
	}{
		{filepath.Join(data, "config.json"), []string{"config", "set", "log.level", "debug"}},
		{filepath.Join(data, "secrets.sealed"), []string{"secret", "set", "b", "--file", value}},
		{filepath.Join(config, "mcp.json"), []string{"mcp", "add", "y", "true"}},
		{filepath.Join(data, "config.json"), []string{"provider", "add", "far", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"}},
	} {
		was, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		want := filepath.Base(c.file) + " was not written, and is as it was: no space is left on the device of " + filepath.Dir(c.file)
		if out, err := run(c.args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: %v, %s; want %q", c.args, err, out, want)
		}
		if now, err := os.ReadFile(c.file); err != nil || string(now) != string(was) {
			t.Errorf("%v: %s holds %q, %v, want what it held", c.args, c.file, now, err)
		}
	}
}
