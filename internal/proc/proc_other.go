//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// sysProcAttr has a process begin a group or, without a terminal, a session, which is a group, too.
func sysProcAttr(spec Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !spec.NoTerminal, Setsid: spec.NoTerminal}
}

// widen is Linux's alone.
func widen(*os.File) {}

// killMarked needs /proc; elsewhere the process group is all there is.
func killMarked(string) int { return 0 }
