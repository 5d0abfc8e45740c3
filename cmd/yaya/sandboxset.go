package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/config"
)

// withSandboxSettings is withSettings that also reports the effects on sandboxes. Without a
// daemon, unreadable server files do not prevent a change.
func withSandboxSettings(ctx context.Context, g *daemon.Flags, f func(*daemon.Backend) error) error {
	return daemon.WithStore(ctx, g, f, func(p daemon.Paths, data *os.Root, settings *config.Store) (admin.Config, error) {
		c, err := g.SandboxAlone(p, data, settings)
		if err != nil {
			c = admin.Config{}
		}
		c.Settings, c.CheckSetting = settings, daemon.SettingChecker(settings, nil)
		return c, nil
	})
}

// sayRefused reports on stderr the programs that cannot start after a change of a sandbox
// setting, and the command that reverts the change.
func sayRefused(c *cobra.Command, b *daemon.Backend, was admin.Setting) error {
	var r admin.Sandbox
	if err := b.API(c.Context(), http.MethodGet, "/api/sandbox", nil, &r); err != nil {
		return fmt.Errorf("the setting is saved, but yaya cannot tell which servers no longer start: %w", err)
	}
	var out strings.Builder
	for _, p := range r.Programs {
		if p.Refused == "" {
			continue
		}
		name := p.Name
		if p.Kind == "server" {
			name = "server " + name
		}
		fmt.Fprintf(&out, "  %s: %s\n", daemon.Printable(name, 140), daemon.Printable(p.Refused, 600))
	}
	if out.Len() == 0 {
		return nil
	}
	undo := "yaya config unset " + was.Key
	if was.Origin == string(config.FromStore) {
		undo = "yaya config set " + was.Key + " " + strings.Trim(string(was.Value), `"`)
	}
	_, err := fmt.Fprintf(c.ErrOrStderr(), "the setting is saved, and these no longer start:\n%sto revert the change: %s\n", out.String(), undo)
	return err
}

// settingOf returns the current state of a setting.
func settingOf(ctx context.Context, b *daemon.Backend, key string) (admin.Setting, error) {
	all, err := valued(ctx, b, key)
	if i := slices.IndexFunc(all, func(s admin.Setting) bool { return s.Key == key }); i >= 0 {
		return all[i], err
	}
	return admin.Setting{Key: key}, err
}
