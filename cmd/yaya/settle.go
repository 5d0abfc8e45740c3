package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/feature"
)

// settled reports whether every server has been started once, for better or
// worse.
func settled(sts []feature.Status) bool {
	return !slices.ContainsFunc(sts, func(s feature.Status) bool {
		return begins(s) || (s.State == feature.Installing && s.LastError == "")
	})
}

// begins reports whether a server is in its first start, and installs nothing.
func begins(s feature.Status) bool {
	return (s.State == feature.Declared || s.State == feature.Starting) && s.LastError == ""
}

// installs reports whether a server is.
func installs(sts []feature.Status) bool {
	return slices.ContainsFunc(sts, func(s feature.Status) bool { return s.State == feature.Installing })
}

// waitSettled waits until settled, at most as long as a server may take; while one
// installs, only who is told of that waits longer. tell may be nil.
func (a *app) waitSettled(ctx context.Context, tell io.Writer) {
	late := time.NewTimer(25 * time.Second)
	defer late.Stop()
	over := late.C
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	told := map[string]bool{}
	for {
		sts := a.host.Status()
		if settled(sts) || (over == nil && (tell == nil || !installs(sts))) {
			return
		}
		for _, st := range sts {
			if st.State == feature.Installing && !told[st.ID] && tell != nil { // once a server
				told[st.ID] = true
				fmt.Fprintf(tell, "%s is installing, which can take minutes: %s\n", printable(st.ID, 40), printable(st.Reason, 200))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-over:
			over = nil
		case <-tick.C:
		}
	}
}

// required returns why a server without which the user does not want to go on
// does not work; it waits until that is known.
func (a *app) required(ctx context.Context, l loaded) error {
	names := map[string]bool{}
	for _, s := range l.servers {
		if s.Required && !s.Disabled {
			names[s.Name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	a.waitSettled(ctx, io.Discard)
	for _, inv := range a.bridge.InvalidServers() {
		if names[inv.Name] {
			return fmt.Errorf("server %q is required: %w", inv.Name, inv.Err)
		}
	}
	for _, st := range a.host.Status() {
		if names[st.ID] && !st.State.Usable() {
			return fmt.Errorf("server %q is required, and is %s: %s", st.ID, st.State, feature.Clean(st.Reason, 500))
		}
	}
	return nil
}
