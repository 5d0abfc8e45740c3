package daemon

import (
	"context"
	"errors"
)

// A phase is a part of the program that is made of the phases before it, and of nothing
// that comes later. Close ends what it began, and nothing that another phase began: the
// phases close in the reverse order.
type phase interface {
	Close(ctx context.Context) error
}

// end closes a phase, and adds what goes wrong to the error of the function that opened it.
func end(ctx context.Context, p phase, err *error) { *err = errors.Join(*err, p.Close(ctx)) }

// undo lists the functions that undo steps, the last first.
type undo []func()

func (u *undo) add(f func()) { *u = append(*u, f) }

// all undoes everything.
func (u *undo) all() {
	for len(*u) > 0 {
		last := (*u)[len(*u)-1]
		*u = (*u)[:len(*u)-1]
		last()
	}
}
