package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/yaya-ai/yaya/kernel/session"
)

var errNotServing = errors.New("this yaya is a node of a cluster, where other nodes may have its sessions: start it (yaya serve), and try again")

// readOnly is the [session.Owner] of a node whose yaya does not run: another process reads its sessions, and
// changes none.
type readOnly struct{}

// ownerAlone returns the owner of the sessions in a data directory for a process that does not serve.
func ownerAlone(data *os.Root) session.Owner {
	if node, err := nodeIn(data); node == nil && err == nil { // it is alone
		return nil
	}
	return readOnly{}
}

// Hold implements [session.Owner].
func (readOnly) Hold(context.Context, string, string) error { return errNotServing }

// Elsewhere implements [session.Owner].
func (readOnly) Elsewhere(context.Context, string) string { return "" }

// Grew implements [session.Owner].
func (readOnly) Grew(string, session.File) {}

// Describe implements [session.Owner].
func (readOnly) Describe(string, json.RawMessage) {}

// Away implements [session.Owner].
func (readOnly) Away(context.Context, []string) ([]session.Away, error) { return nil, nil }

// Kept implements [session.Owner].
func (readOnly) Kept(context.Context, string, session.File) error { return nil }

// Copied implements [session.Owner].
func (readOnly) Copied(context.Context, string, []session.File) (bool, error) {
	return false, errNotServing
}

// Gone implements [session.Owner].
func (readOnly) Gone(context.Context, string) error { return errNotServing }

// Takeover implements [session.Owner].
func (readOnly) Takeover(context.Context, string, func(string) error) (string, error) {
	return "", errNotServing
}

// Fetch implements [session.Owner].
func (readOnly) Fetch(context.Context, string) (string, error) { return "", errNotServing }
