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
	goleak.VerifyTestMain(m)
}
