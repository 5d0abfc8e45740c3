package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/masked"
)

// ErrLate means that a program was ended because it had reached its limit.
var ErrLate = errors.New("it did not end in time")

// Program is a command that yaya runs on its own account, such as a hook.
type Program struct {
	Session string // whose /tmp it shares
	Folder  string // that it works in
	Command string // for sh
	Env     []string
	Input   []byte
	Limit   time.Duration
	// Secrets are concealed in what it leaves. Optional.
	Secrets *masked.Secrets
}

// Ended holds the output of a [Program].
type Ended struct {
	Output string // up to 1 MiB: of more, the beginning and the end
	Stderr string // the last 8 KiB
	Code   int
}

// Run runs a program with the sandbox, the environment and the limits of commands of shell; it
// reaches the hosts of the settings, and nobody is asked about others. When Run returns, the
// whole process tree is gone.
func (p *Plugin) Run(ctx context.Context, x Program) (Ended, error) {
	at, err := p.openAt(x.Session, x.Folder, "")
	if err != nil {
		return Ended{}, err
	}
	s, err := p.settleAt(at, asCommand)
	if err != nil {
		return Ended{}, err
	}
	defer s.at.close()
	s.env, s.apart = append(s.env, x.Env...), true
	limit, cancel := context.WithTimeoutCause(ctx, x.Limit, ErrLate)
	defer cancel()
	child, err := p.start(limit, s, x.Command, nil, nil)
	if err != nil {
		return Ended{}, err
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_, _ = io.Copy(child.Stdin, bytes.NewReader(x.Input)) // unread input is not needed
		_ = child.Stdin.Close()
	}()
	stop := context.AfterFunc(limit, func() { child.Kill() })
	out := &keeper{ends: cut.Ends{Most: maxOutput}, masked: x.Secrets.Stream()}
	_, _ = io.Copy(out, child.Stdout) // the reader ends with the tree
	<-child.Done()
	_ = child.Stdout.Close()
	stop()
	<-fed
	out.end()
	if limit.Err() != nil {
		return Ended{}, context.Cause(limit)
	}
	return Ended{out.ends.String(), x.Secrets.String(child.Stderr()), child.ExitCode()}, nil
}
