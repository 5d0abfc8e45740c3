package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/plugins/conform"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// TestPlugin checks the plugin in a folder or a .tar.gz against the protocol, in its sandbox and with a
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
	pkg, err := installed.Inspect(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pkg.Close()) }()
	if pkg.Parts != nil {
		testPackage(pkg, report)
		return nil
	}
	d := pkg.Description
	if folder, err = filepath.EvalSymlinks(pkg.Folder); err != nil { // that of an archive is temporary
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

// testPackage checks a package for agents: what yaya leaves out of it because it is broken fails.
func testPackage(p *installed.Package, report func(conform.Result)) {
	report(conform.Result{Check: "it is a package: " + string(p.Parts.Format)})
	for _, name := range p.Parts.Skills {
		report(conform.Result{Check: "skill " + name})
	}
	_, bad, err := packageServers(p.Parts.Name, p.Parts, rootShown, dataShown)
	if err != nil {
		report(conform.Result{Check: "servers", Err: err})
	}
	for _, s := range p.Parts.Servers {
		r := conform.Result{Check: "server " + s.Name}
		for _, x := range bad {
			if x.Name == s.Name || x.Name == p.Parts.Name+"-"+s.Name {
				r.Err = x.Err
			}
		}
		report(r)
	}
	for _, h := range p.Parts.Hooks {
		report(conform.Result{Check: "hook " + string(h.Event)})
	}
	for _, fault := range p.Parts.Faults {
		report(conform.Result{Check: "everything can be used", Err: errors.New(fault)})
	}
}
