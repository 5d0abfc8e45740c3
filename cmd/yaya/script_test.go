package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	code := testscriptMain(m)
	removeBuilt()
	os.Exit(code)
}

func testscriptMain(m *testing.M) (code int) {
	if filepath.Base(os.Args[0]) == "yaya" || os.Getenv("YAYA_PROCESS_GUARD") != "" || os.Getenv("YAYA_PROCESS_OPENER") != "" {
		return run()
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "yaya-script")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Symlink(exe, filepath.Join(dir, "yaya")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("PATH", dir+":"+os.Getenv("PATH")); err != nil {
		return 1
	}
	// Most tests wait for processes most of their time. -parallel sets another number.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestScripts runs the command line as a user does; anyone can add a case.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", "")
			e.Setenv("XDG_CONFIG_HOME", "")
			return nil
		},
	})
}
