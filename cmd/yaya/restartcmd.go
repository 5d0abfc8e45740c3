package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"

	"github.com/yaya-ai/yaya/internal/errnos"
)

func restartCommand(g *daemon.Flags) *cobra.Command {
	var drain time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use: "restart", Short: "Restart the running yaya in place, after an update for example",
		Long: `Restart the running yaya in place: its process runs the program again, with the
flags that it was started with, after an update for example. No connection is
refused: new ones wait until yaya is back. MCP sessions go on, and clients resume
their streams and WebSockets. The MCP servers start again, and turns of agents end
as interrupted.

yaya first checks the program and the configuration, and does not restart if they
cannot work. Calls that run have --drain to end; those that take longer fail.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if drain < 0 || drain > daemon.MaxDrain {
				return &usageError{c.CommandPath(), fmt.Errorf("--drain %v: 0 to %v", drain, daemon.MaxDrain)}
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			done, err := restart(c.Context(), p, drain)
			if err != nil {
				return err
			}
			return showRestart(c.OutOrStdout(), done, asJSON)
		},
	}
	c.Flags().DurationVar(&drain, "drain", daemon.DefaultDrain, "`time` that running calls have to end")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// Waiting for a yaya that restarts.
const (
	restartTime  = time.Minute // besides the drain
	restartAsked = 100 * time.Millisecond
)

// restart asks the daemon for a restart and waits until it is over.
func restart(ctx context.Context, p daemon.Paths, drain time.Duration) (daemon.Restart, error) {
	b, ok := daemon.Reach(ctx, p)
	if !ok {
		return daemon.Restart{}, fmt.Errorf("no yaya runs on %s: start one with yaya serve", p.Data)
	}
	var begun daemon.Restart
	err := b.API(ctx, http.MethodPost, "/cli/restart", daemon.RestartRequest{DrainMS: drain.Milliseconds()}, &begun)
	b.Client.CloseIdleConnections()
	if _, ok := errors.AsType[*url.Error](err); ok && ctx.Err() == nil { // nobody answers there
		err = fmt.Errorf("yaya ended during its restart, before the new program ran: %s (%w)", logSays, err)
	}
	if err != nil {
		return daemon.Restart{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, drain+restartTime)
	defer cancel()
	for {
		// A connection to the socket waits for the successor.
		now, err := askRestart(ctx, p)
		switch {
		case err == nil && now.ID != begun.ID:
			return daemon.Restart{}, fmt.Errorf("yaya ended during its restart and was started again: %s", logSays)
		case err == nil && now.State != daemon.RestartRunning:
			return now, nil
		case err != nil:
			if gone := ended(ctx, p); gone != nil {
				return daemon.Restart{}, gone
			}
		}
		select {
		case <-time.After(restartAsked):
		case <-ctx.Done():
			return daemon.Restart{}, fmt.Errorf("yaya has not come back after its restart: %w; its log says why", ctx.Err())
		}
	}
}

const logSays = "its log says why, and yaya verify whether all files are whole"

// ended returns an error if no yaya is there. During a restart, its socket stays open.
func ended(ctx context.Context, p daemon.Paths) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", p.Socket())
	if err == nil {
		return c.Close()
	}
	if !errors.Is(err, errnos.Refused) && !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // it may be busy
	}
	return fmt.Errorf("yaya ended during its restart: %s. Its service manager starts it again; without one, run yaya serve", logSays)
}

func askRestart(ctx context.Context, p daemon.Paths) (now daemon.Restart, err error) {
	b, ok := daemon.Reach(ctx, p)
	if !ok {
		return now, errors.New("not there")
	}
	defer b.Client.CloseIdleConnections()
	return now, b.API(ctx, http.MethodGet, "/cli/restart", nil, &now)
}

func showRestart(w io.Writer, r daemon.Restart, asJSON bool) error {
	if asJSON {
		if err := printJSON(w, r); err != nil || r.State == daemon.RestartDone {
			return err
		}
		return &exitStatus{}
	}
	if r.State != daemon.RestartDone {
		return fmt.Errorf("yaya was not restarted, and %s goes on: %s", daemon.Printable(r.From, 60), daemon.Printable(r.Error, 1000))
	}
	version := "yaya " + r.To
	if r.From != r.To {
		version = fmt.Sprintf("yaya %s, before %s", r.To, r.From)
	}
	_, err := fmt.Fprintf(w, "Restarted in %v: %s\n", (time.Duration(r.TookMS) * time.Millisecond).Round(10*time.Millisecond), version)
	if err == nil && !r.Drained {
		_, err = fmt.Fprintln(w, "Some calls took longer than --drain and were cut off.")
	}
	return err
}
