//go:build unix

package chat

import (
	"cmp"
	"os"

	"github.com/yaya-ai/yaya/internal/proc"
)

// shellOf returns how to run a command in the user's shell. Standard error goes where standard output
// does, so that the lines of both keep their order.
func shellOf(command string) proc.Spec {
	return proc.Spec{Path: "/bin/sh", Args: []string{"-c", `exec "$0" -c "$1" 2>&1`, cmp.Or(os.Getenv("SHELL"), "/bin/sh"), command}}
}
