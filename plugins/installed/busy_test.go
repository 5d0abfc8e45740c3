package installed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// A program that has just been installed runs, whatever else is started meanwhile: none of them
// has it open for writing.
func TestInstalledProgramsAreNotBusy(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip("there is no program true")
	}
	binary, err := os.ReadFile(program) //nolint:forbidigo // test
	if err != nil {
		t.Fatal(err)
	}
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "bin"), binary, 0o700); err != nil { //nolint:gosec,forbidigo // a program
		t.Fatal(err)
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, program).Run()
			}
		})
	}
	defer others.Wait()
	defer cancel()
	dir := t.TempDir()
	for i := range 300 {
		at := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		to, err := os.OpenRoot(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := copyTree(source, to); err != nil {
			t.Fatal(err)
		}
		_ = to.Close()
		if err := exec.CommandContext(t.Context(), filepath.Join(at, "bin")).Run(); err != nil {
			t.Fatalf("program %d = %v, want no error", i, err)
		}
	}
}
