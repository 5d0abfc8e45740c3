package plugin_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/kernel/plugin"
)

// A plugin holds its id for its category, even if it has failed; memories share their kinds.
func TestHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		failed := of(plugin.Strategy, "failed")
		failed.onLoad = func(plugin.Context) error { return errors.New("no port") }
		w.Load(t.Context(), true, of(plugin.Adapter, "adapter"), of(plugin.LLMProvider, "provider"), of(plugin.Strategy, "react"), failed, of(plugin.Memory, "memory"), of(plugin.Skill, "skill"))
		for _, c := range []struct {
			category plugin.Category
			id       string
			want     string
		}{
			{plugin.Adapter, "adapter", "adapter"},
			{plugin.LLMProvider, "provider", "provider"},
			{plugin.Strategy, "react", "react"},
			{plugin.Strategy, "failed", "failed"},
			{plugin.Strategy, "free", ""},
			{plugin.Strategy, "adapter", ""},
			{plugin.Memory, "memory", ""},
			{plugin.Skill, "skill", ""},
		} {
			m := of(c.category, c.id).m
			m.Name = "another"
			if got := w.Holder(m); got != c.want {
				t.Errorf("Holder() of a %s with the id %s = %q, want %q", c.category, c.id, got, c.want)
			}
			m.Name = c.want
			if got := w.Holder(m); got != "" {
				t.Errorf("Holder() of the %s %s itself = %q, want none", c.category, c.id, got)
			}
		}
	})
}
