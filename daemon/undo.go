package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/yaya-ai/yaya/internal/masked"
	steps "github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
)

// undoFolder is the folder of the data directory that keeps what undoes changes of agents.
const undoFolder = "undo"

// undoable is the store of the changes of agents, with its folder.
type undoable struct {
	*steps.Store
	root *os.Root
}

func openUndo(data *os.Root, secrets *masked.Secrets) (*undoable, error) {
	if err := data.MkdirAll(undoFolder, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	root, err := data.OpenRoot(undoFolder)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return &undoable{steps.New(root, func(data []byte) bool { return secrets.String(string(data)) != string(data) }), root}, nil
}

// forgetUndo removes what would undo the changes of a session.
func forgetUndo(data *os.Root, session string) error {
	u, err := openUndo(data, nil) // it reads no content
	if err != nil {
		return err
	}
	return errors.Join(u.Forget(session), u.Close())
}

// Close closes the folder.
func (u *undoable) Close() error { return u.root.Close() }

// undoLast undoes the last changes of a session and its sub-agents, in a folder that is trusted.
func (c *core) undoLast(ctx context.Context, session string) (steps.Undone, error) {
	return c.undone.Undo(ctx, event.Root(session), func(dir string) (*workspace.Workspace, error) {
		w, trusted, err := c.gate.Reopen(session, dir)
		switch {
		case w == nil:
			return nil, err
		case err != nil:
			return nil, errors.Join(err, w.Close())
		case !trusted:
			return nil, errors.Join(fmt.Errorf("%w: trust it with yaya trust %s", steps.ErrUntrusted, dir), w.Close())
		}
		return w, nil
	})
}
