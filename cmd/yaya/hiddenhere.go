package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/proc"
)

// hiddenHere explains an error that arose because yaya's own folders cannot be accessed, and
// says what to do. It returns "" for other errors. Every yaya sandbox hides those folders; a
// program inside sees an empty folder that cannot be written.
func hiddenHere(g *daemon.Flags, err error) string {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errnos.ReadOnly) {
		return ""
	}
	p, perr := g.Paths()
	if perr != nil {
		return ""
	}
	at := ""
	if e, ok := errors.AsType[*fs.PathError](err); ok && filepath.IsAbs(e.Path) {
		at = e.Path
	}
	for _, dir := range []string{p.Data, p.Config} {
		denied := hostfile.CheckMake(dir)
		if errors.Is(denied, fs.ErrPermission) || errors.Is(denied, errnos.ReadOnly) || at == dir || strings.HasPrefix(at, dir+string(filepath.Separator)) {
			switch {
			case proc.Boxed():
				return "yaya cannot access its own folder " + dir + " here. Every yaya sandbox (guarded, a server's, an agent's command's) hides that folder: run yaya outside the sandbox."
			case errors.Is(err, errnos.ReadOnly):
				return "The file system of yaya's own folder " + dir + " is read-only: make it writable (mount -o remount,rw), or name another folder by --data-dir and --config-dir."
			}
			return "yaya cannot access its own folder " + dir + ", or a file in it: it belongs to another user, or its mode refuses yaya. Run yaya as its owner (sudo -u USER), or give it to yaya's user (chown -R USER)."
		}
	}
	return ""
}
