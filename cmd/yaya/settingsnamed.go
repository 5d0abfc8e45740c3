package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
)

// sayNameless tells on stderr if a setting names a strategy or a provider that is not there. It may
// come later, so the setting is saved.
func sayNameless(c *cobra.Command, b *daemon.Backend, key string, value json.RawMessage) error {
	var names []string
	if one := ""; json.Unmarshal(value, &one) == nil {
		names = []string{one}
	} else if json.Unmarshal(value, &names) != nil {
		return nil //nolint:nilerr // it names nothing
	}
	if key == "strategy" {
		for _, name := range names {
			if known := daemon.Strategies(); !slices.Contains(known, name) {
				fmt.Fprintf(c.ErrOrStderr(), "the setting is saved, but yaya has no strategy %q%s: without a plugin that has it, no turn runs\n", name, members.Among(name, known))
			}
		}
		return nil
	}
	if key != "provider" && key != "model.agent" && key != "model.summary" && key != "model.fallbacks" {
		return nil
	}
	known, err := providerIDs(c.Context(), b)
	if err != nil {
		return err
	}
	for _, name := range names {
		if key != "provider" {
			name, _, _ = strings.Cut(name, "/")
		}
		if name != "" && !slices.Contains(known, name) {
			fmt.Fprintf(c.ErrOrStderr(), "the setting is saved, but there is no provider %q%s (to add it: yaya provider add)\n", name, members.Among(name, known))
		}
	}
	return nil
}

// providerIDs returns the ids of the configured providers, and of the one that yaya has without any.
func providerIDs(ctx context.Context, b *daemon.Backend) ([]string, error) {
	const prefix = "providers."
	all, err := valued(ctx, b, prefix)
	ids := []string{llm_echo.Name}
	for _, s := range all {
		if id, _, below := strings.Cut(strings.TrimPrefix(s.Key, prefix), "."); below && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, err
}
