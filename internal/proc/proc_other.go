//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// widen is Linux's alone.
func widen(*os.File) {}

// killMarked needs /proc; elsewhere the process group is all there is.
func killMarked(string) int { return 0 }
