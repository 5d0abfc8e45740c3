package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// itself refuses a server that leads back to this yaya.
func (a *app) itself(x servers.Server) error {
	if x.Sandbox != nil {
		if err := a.reachable(x.Sandbox.Hosts); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	self := servers.Self{Data: a.data}
	addrs := a.listening()
	for _, self.Addr = range addrs {
		if err := x.CheckItself(self); err != nil {
			return err
		}
	}
	if len(addrs) > 0 {
		return nil
	}
	return x.CheckItself(self)
}

// listening are the addresses that this yaya listens on.
func (a *app) listening() []string {
	if addrs := a.listens.Load(); addrs != nil {
		return *addrs
	}
	return nil
}

// reachable reports why no program in a sandbox may reach one of these hosts.
func (a *app) reachable(hosts []string) error { return sandbox.CheckHosts(hosts, a.listening()) }

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
	}
	return nil
}

// checkers also refuses what [commandSetting] does; this yaya listens there.
func checkers(check func(string, json.RawMessage) error, listens func() []string) func(string, json.RawMessage) error {
	return func(key string, v json.RawMessage) error {
		return errors.Join(check(key, v), commandSetting(listens(), key, v))
	}
}
