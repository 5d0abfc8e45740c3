package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// sandboxesNow returns the sandboxes of the running yaya's servers before a setting changes. It
// returns nil for a setting that is not about sandboxes, and without a running yaya.
func sandboxesNow(ctx context.Context, b *daemon.Backend, key string) (*admin.Sandbox, error) {
	if name, _, _ := strings.Cut(key, "."); name != "sandbox" || !b.Remote {
		return nil, nil //nolint:nilnil // nothing to report
	}
	var r admin.Sandbox
	if err := b.API(ctx, http.MethodGet, "/api/sandbox", nil, &r); err != nil {
		return nil, fmt.Errorf("read the sandboxes of the servers: %w", err)
	}
	return &r, nil
}

// sayRestarts reports on stderr which servers restart because a setting changed, and which may
// start now.
func sayRestarts(c *cobra.Command, b *daemon.Backend, key string, before *admin.Sandbox) error {
	if before == nil {
		return nil
	}
	after, err := sandboxesNow(c.Context(), b, key)
	if err != nil {
		return err
	}
	say := func(what string, servers []string) error {
		if len(servers) == 0 {
			return nil
		}
		_, err := fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", what, daemon.Printable(strings.Join(servers, ", "), 1000))
		return err
	}
	return errors.Join(
		say("restarts once the calls in flight have ended", otherBoxes(*before, *after)),
		say("starts now, as the setting allows it", released(*before, *after)),
	)
}

// otherBoxes names the servers that ran before and may run in another sandbox after.
func otherBoxes(before, after admin.Sandbox) (out []string) {
	wants := map[string]string{"": sandbox.None}
	for _, p := range after.Profiles {
		wants[p.Profile] = p.Backend
	}
	for _, p := range before.Programs {
		now, ok := programOf(after, p.Name)
		if p.Kind != "server" || !ok || p.Backend == "" || p.Backend == wants[p.Profile] {
			continue
		}
		if now.Note == "" || strings.HasSuffix(now.Note, daemon.SettingsWant+wants[p.Profile]) { // otherwise it is refused
			out = append(out, p.Name)
		}
	}
	return out
}

// released names the servers that could not start before and may start after.
func released(before, after admin.Sandbox) (out []string) {
	for _, p := range before.Programs {
		if now, ok := programOf(after, p.Name); p.Kind == "server" && ok && strings.HasPrefix(p.Note, daemon.NotStarted) && !strings.HasPrefix(now.Note, daemon.NotStarted) {
			out = append(out, p.Name)
		}
	}
	return out
}

func programOf(s admin.Sandbox, server string) (admin.SandboxProgram, bool) {
	i := slices.IndexFunc(s.Programs, func(p admin.SandboxProgram) bool { return p.Kind == "server" && p.Name == server })
	if i < 0 {
		return admin.SandboxProgram{}, false
	}
	return s.Programs[i], true
}
