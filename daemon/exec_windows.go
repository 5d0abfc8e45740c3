package daemon

import (
	"errors"
	"os"
)

// noRestart says why this system has no restart in place, nil where it has.
var noRestart = errors.New("Windows replaces no program in its process, so that listeners and clients cannot be handed on: stop yaya (Ctrl-C) and start it again")

// inherited returns nil: no program on Windows is started with numbered descriptors.
func inherited(int, string) *os.File { return nil }

func inheritable(*os.File) error { return noRestart }

func replaceProcess(string, []string, []string) error { return noRestart }

func duplicate(*os.File) (*os.File, error) { return nil, noRestart }
