package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// hiddenHere says where a command can be run that has failed since the system keeps it
// from yaya's own folders, "" about other errors. In every sandbox of yaya's they are
// hidden, which looks like an empty folder that nobody can write.
func (g *globals) hiddenHere(err error) string {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return ""
	}
	p, perr := g.paths()
	if perr != nil {
		return ""
	}
	at := ""
	if e, ok := errors.AsType[*fs.PathError](err); ok && filepath.IsAbs(e.Path) {
		at = e.Path
	}
	for _, dir := range []string{p.data, p.config} {
		denied := unix.Access(dir, unix.W_OK)
		if errors.Is(denied, fs.ErrPermission) || errors.Is(denied, syscall.EROFS) || at == dir || strings.HasPrefix(at, dir+"/") {
			return "yaya cannot get at its own folder " + dir + " here. In a sandbox of yaya's, such as guarded, that of a server or of an agent's command, it is hidden: run yaya outside of the sandbox."
		}
	}
	return ""
}
