package chat

import (
	"errors"

	tea "charm.land/bubbletea/v2"
)

// stop reports that Windows does not stop programs.
func stop(*tea.Program) error {
	return errors.New("Windows cannot stop a program; leave with Ctrl+D")
}

// watchStops does nothing: Windows has no signal for it.
func watchStops(func(tea.Msg)) (end func()) { return func() {} }
