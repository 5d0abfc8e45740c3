package chat

import (
	"cmp"
	"os"

	"github.com/yaya-ai/yaya/internal/proc"
)

// shellOf returns how to run a command in the user's shell, which gets it as it was typed: cmd.exe
// removes the outer quotes, and knows no others.
func shellOf(command string) proc.Spec {
	return proc.Spec{Path: cmp.Or(os.Getenv("ComSpec"), "cmd.exe"), Line: `/S /C "` + command + `"`}
}
