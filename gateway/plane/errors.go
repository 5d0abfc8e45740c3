package plane

import (
	"errors"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Codes of an [Error]: the same on the topics and over JSON-RPC, besides its own.
const (
	CodeParams      = jsonrpc.CodeInvalidParams
	CodeUnavailable = -32001 // bridge_unavailable
	CodeNotFound    = -32002
	CodeForbidden   = -32003
	CodeTimeout     = -32004
	CodeLimited     = -32005
	CodeFailed      = -32006 // the skill has failed
)

// Error describes a refused or failed command for its caller.
type Error struct {
	Code   int
	reason string // of the dead letter, "" without one
	Text   string
}

func (e *Error) Error() string { return e.Text }

func noAgent(id string) error {
	return &Error{Code: CodeNotFound, Text: "there is no agent " + clip(id)}
}

// problem returns the form of an error for clients of topics.
func problem(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &wire.Problem{Reason: e.Text, Code: e.Code}
	}
	return err
}

// unavailable returns the error for clients when the log cannot be written.
func unavailable(err error) error {
	if errors.Is(err, control.ErrUnavailable) {
		return &wire.Problem{Reason: "bridge_unavailable", Code: CodeUnavailable}
	}
	return err
}
