package sandbox

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if attempt := os.Getenv(attemptEnv); attempt != "" {
		syscall.Exit(attemptMain(attempt)) // under the race detector, os.Exit takes a second
	}
	if os.Getenv(behindEnv) == "" {
		noProxy()
	}
	goleak.VerifyTestMain(m)
}

// noProxy makes tests connect directly, even in the network of a company, and in a
// sandbox.
func noProxy() {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		_ = os.Unsetenv(name) // it fails for no such name
	}
}
