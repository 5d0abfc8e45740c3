package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/proc"
)

// TestMain gives the tests a home folder of their own: yaya makes folders there, and lists
// its data directories.
func TestMain(m *testing.M) {
	if proc.GuardMain() {
		return
	}
	os.Exit(atHome(m))
}

func atHome(m *testing.M) int {
	home, err := os.MkdirTemp("", "yaya-home")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(home) }()
	// Go's own caches stay where they are: a test asks the go command.
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		err = os.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
		if err != nil {
			return 1
		}
	}
	if was, err := os.UserHomeDir(); err == nil && os.Getenv("GOPATH") == "" {
		err = os.Setenv("GOPATH", filepath.Join(was, "go"))
		if err != nil {
			return 1
		}
	}
	for name, value := range map[string]string{"HOME": home, "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""} {
		if err := os.Setenv(name, value); err != nil {
			return 1
		}
	}
	return m.Run()
}
