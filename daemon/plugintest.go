package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/plugins/conform"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// TestPlugin checks the plugin in a folder against the protocol, in its sandbox and with a
// state folder that is removed afterwards. It asks no daemon.
func TestPlugin(ctx context.Context, g *Flags, folder string, report func(conform.Result)) (err error) {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if folder, err = filepath.Abs(folder); err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	d, err := remote.ReadDescription(folder)
	if err != nil {
		return err
	}
	data, settings, err := g.Open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	temporary, err := os.MkdirTemp("", "yaya-plugin-state-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }() //nolint:forbidigo // made here, with a name of its own
	state, err := filepath.EvalSymlinks(temporary)
	if err != nil {
		return err
	}
	procs := &proc.Manager{Guard: true}
	defer func() {
		ctx, cancel := Shortly()
		defer cancel()
		procs.Close(ctx)
	}()
	subject := remote.New(remote.Config{Folder: folder, Description: d, Procs: procs, Sandboxes: sandboxes(p, settings, g.OwnFiles(p, nil), nil), Env: os.LookupEnv, Version: Version()})
	conform.Run(ctx, d, func() (*remote.Process, error) { return subject.Spawn(state) }, report)
	return ctx.Err()
}
