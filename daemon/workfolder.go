package daemon

import (
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/session"
)

// folder returns the folder that a session works in.
func (c *core) folder(id string) (string, error) {
	s, err := c.kernel.Sessions.Find(id, "")
	if err != nil {
		return "", err
	}
	if s.Workspace() == session.Nowhere {
		return "", fmt.Errorf("this session works in no folder: another device began it, and the folder %s is not open to devices (the user of this machine can change that with: yaya trust %s)", c.st.workspace, c.st.workspace)
	}
	return s.Workspace(), nil
}

// begin makes a session, unless it is there, for somebody who names no folder: it works
// where yaya runs, or nowhere if that folder is not open to them. A session that is there
// has to work in a folder that is.
func (c *core) begin(who auth.Principal, id string) error {
	s, err := c.kernel.Sessions.Find(id, "")
	if err == nil && s.Workspace() != session.Nowhere {
		_, err := c.st.mayUse(who, s.Workspace())
		return err
	}
	if !errors.Is(err, session.ErrNotFound) {
		return err
	}
	dir := ""
	if at, err := c.st.mayUse(who, c.st.workspace); err != nil {
		dir = session.Nowhere
	} else if who.Kind != auth.Owner {
		dir = at
	}
	_, err = c.kernel.Sessions.Open(id, dir)
	return err
}
