package daemon

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// self identifies this yaya: servers and hosts that lead back to it are refused.
type self struct {
	data    string   // its data directory
	listens []string // its addresses, none for one that does not listen
}

// refuse refuses a server that leads back to this yaya.
func (s self) refuse(x servers.Server) error { return manage.CheckItself(x, s.data, s.listens) }

// Settings of agents' commands.
const (
	commandHosts = "sandbox.command.hosts"
	commandWrite = "sandbox.command.write"
)

// commandSetting refuses hosts that commands of agents could not reach, and folders that
// none of them could be given.
func commandSetting(listens []string, key string, v json.RawMessage) error {
	if key != commandHosts && key != commandWrite {
		return nil
	}
	var list []string
	if err := json.Unmarshal(v, &list); err != nil {
		return fmt.Errorf("%s: not a list: %w", key, err)
	}
	if key == commandHosts {
		if err := sandbox.CheckHosts(list, listens); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	for _, dir := range list {
		if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
			return fmt.Errorf("%s: %q does not begin with / or ~/", key, dir)
		}
		if err := sandbox.NotWhole(dir); filepath.IsAbs(dir) && err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}
