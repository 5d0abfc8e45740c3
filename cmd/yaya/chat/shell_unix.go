//go:build unix

package chat

import (
	"cmp"
	"os"
)

// shellOf returns how to run a command in the user's shell. Standard error goes where standard output
// does, so that the lines of both keep their order.
func shellOf(command string) (path string, args []string) {
	return "/bin/sh", []string{"-c", `exec "$0" -c "$1" 2>&1`, cmp.Or(os.Getenv("SHELL"), "/bin/sh"), command}
}
