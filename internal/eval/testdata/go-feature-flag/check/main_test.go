package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestHead(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "head")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	in := strings.Repeat("x\n", 20)
	for args, want := range map[string]int{"": 10, "-n 3": 3, "-n 0": 0, "-n 30": 20} {
		c := exec.Command(bin, strings.Fields(args)...)
		c.Stdin = strings.NewReader(in)
		if out, err := c.Output(); err != nil || strings.Count(string(out), "\n") != want {
			t.Errorf("head %s: %q, %v, want %d lines", args, out, err, want)
		}
	}
	c := exec.Command(bin, "-n", "-1")
	if out, err := c.Output(); err == nil || c.ProcessState.ExitCode() != 2 || len(out) > 0 {
		t.Errorf("head -n -1: %q, %v, want status 2", out, err)
	}
}
