package chat

import (
	"cmp"
	"os"
)

// shellOf returns how to run a command in the user's shell.
func shellOf(command string) (path string, args []string) {
	return cmp.Or(os.Getenv("ComSpec"), "cmd.exe"), []string{"/C", command}
}
