package plane_test

import (
	"context"
	"errors"
	"testing"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane"
)

// absent is a log that cannot be written at first, and is there again when it is asked.
type absent struct {
	control.Log
	fails  int
	quorum bool
	err    error
	tries  int
}

func (a *absent) State() control.State { return control.State{Quorum: a.quorum} }

func (a *absent) Append(context.Context, control.Change, func() error) (control.Entry, error) {
	if a.tries++; a.tries <= a.fails {
		return control.Entry{}, a.err
	}
	return control.Entry{}, nil
}

// CL-11: a node starts although the log went and came back in that moment: a restart during an
// election ended the node.
func TestStartWhileTheLogComesBack(t *testing.T) {
	other := errors.New("damaged")
	for name, c := range map[string]struct {
		log   absent
		fails bool
	}{
		"it is back":     {absent{fails: 1, quorum: true, err: control.ErrUnavailable}, false},
		"it is away":     {absent{fails: 9, err: control.ErrUnavailable}, false},
		"a full disk":    {absent{fails: 9, quorum: true, err: control.ErrUnavailable}, true},
		"another reason": {absent{fails: 1, quorum: true, err: other}, true},
	} {
		p := plane.New(plane.Config{KernelID: "k"})
		if err := p.Lead(t.Context(), &c.log); (err != nil) != c.fails || (c.fails && !errors.Is(err, c.log.err)) || c.log.tries > 3 {
			t.Errorf("%s: got %v after %d attempts, want an error: %v", name, err, c.log.tries, c.fails)
		}
	}
}
