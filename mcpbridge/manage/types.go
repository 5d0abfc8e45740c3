package manage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

// Errors of a [Manager]. Their texts are for whoever asked.
var (
	ErrUnknown = errors.New("not found")
	ErrRefused = errors.New("that cannot be done")
	ErrStale   = trust.ErrStale
)

// Server is a configured server, and how it is.
type Server struct {
	Name      string
	Transport servers.Transport
	Endpoint  string // its command or URL, without secrets
	File      string
	Editable  bool // it is in yaya's own file
	State     string
	Reason    string
	Config    json.RawMessage // secrets masked
	Revision  string          // another one after every change
	Withheld  []string        // names and patterns of tools that the configuration withholds
	// Profile is that of its process's sandbox, and Allowed what the process may do, in
	// words; both are "" for a remote server.
	Profile string
	Allowed string
	// Status is the status of its provider; nil if none runs.
	Status *feature.Status
}

// Prepared is a change of a server that waits to be applied: what is shown is what
// is done.
type Prepared struct {
	Server string
	New    bool
	Runs   string          // the command line, or URL, secrets masked
	Config json.RawMessage // secrets masked
	Notes  []string
	// Exactly is Runs without masks in the command line, for one that somebody else has written.
	Exactly string
	// Apply does it. It fails with [ErrStale] if the server has been changed since.
	Apply func(context.Context) error
}

// Importable holds the servers that another client has configured.
type Importable struct {
	Client  string
	Path    string
	Servers []ImportServer
}

// ImportServer is a server of another client.
type ImportServer struct {
	Name     string
	Endpoint string
	Known    bool // there is one already
}

// Waiting describes the changes of one server that wait for approval.
type Waiting struct {
	Server string
	Reason string // reason that concerns the whole server
	// Runs is the command line of a server that a folder brings, and Config its entry.
	Runs   string
	Config json.RawMessage
	Tools  []trust.WaitingTool
	// Instructions are approved with all of it.
	Instructions string
	Digest       string // of all of this: what is approved
}

// Change is that of a server in its file, as it is taken over.
type Change struct {
	File   string
	Name   string
	Change string // added, changed or removed
	Note   string
}

// FileError is the reason why a file is not taken over.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// EmptyFile refuses a file that an editor may be about to write. instead is what it would
// hold to configure nothing.
func EmptyFile(file, instead, what string) error {
	return fmt.Errorf("%s is empty, as one that is half written: for no %s, let it hold %s", file, what, instead)
}

// CheckItself refuses a server that leads back to the yaya of a data folder that listens
// on these addresses.
func CheckItself(x servers.Server, data string, listens []string) error {
	if x.Sandbox != nil {
		if err := sandbox.CheckHosts(x.Sandbox.Hosts, listens); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	self := servers.Self{Data: data}
	for _, self.Addr = range listens {
		if err := x.CheckItself(self); err != nil {
			return err
		}
	}
	if len(listens) > 0 {
		return nil
	}
	return x.CheckItself(self)
}
