package manage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// lacks lists what a server lacks to start here: variables and its command. It is only a note
// at configuration time: the user may still provide them later.
func (s *Manager) lacks(x servers.Server) (out []string) {
	x, _, err := x.Expand(servers.Scope{Env: os.LookupEnv, Home: s.cfg.Home, Workspace: s.cfg.Here, Secret: s.namedSecret, Missed: func(err error) {
		if note := err.Error(); !slices.Contains(out, note) {
			out = append(out, note)
		}
	}})
	if err != nil || x.Transport != servers.Stdio {
		return out
	}
	path, err := proc.LookPath(x.Command, x.Environ(os.LookupEnv))
	if err == nil {
		if !filepath.IsAbs(path) {
			path = filepath.Join(x.Dir, path)
		}
		if _, err = os.Stat(path); err != nil {
			err = fmt.Errorf("there is no file %s; install it, or correct the path", path)
		}
	}
	if err == nil {
		return out
	}
	note := err.Error()
	switch first, rest, blank := strings.Cut(x.Command, " "); {
	case blank && len(x.Args) == 0:
		note += fmt.Sprintf("; if %q are its arguments, the command is %q and they belong in args", rest, first)
	case strings.Contains(x.Command, "/") && !strings.HasPrefix(x.Command, "/") && strings.ContainsAny(strings.Split(x.Command, "/")[0], ".:") && x.Command[0] != '.':
		note += "; an address begins with https:// or http://"
	}
	return append(out, note)
}
