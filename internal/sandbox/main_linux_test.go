package sandbox

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if attempt := os.Getenv(attemptEnv); attempt != "" {
		os.Exit(attemptMain(attempt))
	}
	goleak.VerifyTestMain(m)
}
