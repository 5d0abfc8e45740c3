package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/daemon"
)

// hiddenHere explains an error that arose because a sandbox hides yaya's own folders, and says
// where to run the command instead. It returns "" for other errors. Every yaya sandbox hides
// those folders; a program inside sees an empty folder that cannot be written.
func hiddenHere(g *daemon.Flags, err error) string {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
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
		denied := unix.Access(dir, unix.W_OK)
		if errors.Is(denied, fs.ErrPermission) || errors.Is(denied, syscall.EROFS) || at == dir || strings.HasPrefix(at, dir+"/") {
			return "yaya cannot access its own folder " + dir + " here. Every yaya sandbox (guarded, a server's, an agent's command's) hides that folder: run yaya outside the sandbox."
		}
	}
	return ""
}
