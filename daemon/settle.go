package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// Settled reports whether every server has been started once, for better or
// worse.
func Settled(sts []feature.Status) bool {
	return !slices.ContainsFunc(sts, func(s feature.Status) bool {
		return begins(s) || (s.State == feature.Installing && s.LastError == "")
	})
}

// begins reports whether a server is in its first start, and installs nothing.
func begins(s feature.Status) bool {
	return (s.State == feature.Declared || s.State == feature.Starting) && s.LastError == ""
}

// Installs reports whether a server is.
func Installs(sts []feature.Status) bool {
	return slices.ContainsFunc(sts, func(s feature.Status) bool { return s.State == feature.Installing })
}

// waitSettled waits until settled, at most as long as a server may take; while one
// installs, only a caller that shows the installation waits longer. tell may be nil.
func (b *bridge) waitSettled(ctx context.Context, tell io.Writer) {
	late := time.NewTimer(25 * time.Second)
	defer late.Stop()
	over := late.C
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	told := map[string]bool{}
	for {
		sts := b.host.Status()
		if Settled(sts) || (over == nil && (tell == nil || !Installs(sts))) {
			return
		}
		for _, st := range sts {
			if st.State == feature.Installing && !told[st.ID] && tell != nil { // once a server
				told[st.ID] = true
				fmt.Fprintf(tell, "%s is installing, which can take minutes: %s\n", Printable(st.ID, 40), Printable(st.Reason, 200))
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
func (b *bridge) required(ctx context.Context) error {
	names := map[string]bool{}
	for _, s := range b.loaded.Servers {
		if s.Required && !s.Disabled {
			names[s.Name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	b.waitSettled(ctx, io.Discard)
	for _, inv := range b.mcp.InvalidServers() {
		if names[inv.Name] {
			return fmt.Errorf("server %q is required: %w", inv.Name, inv.Err)
		}
	}
	for _, st := range b.host.Status() {
		if names[st.ID] && !st.State.Usable() {
			return fmt.Errorf("server %q is required, and is %s: %s", st.ID, st.State, feature.Clean(st.Reason, 500))
		}
	}
	return nil
}

// DetailOf reads the provider's own part of a status, which is typed in the
// daemon and plain JSON when it came over the socket.
func DetailOf(st feature.Status) upstream.Detail {
	if d, ok := st.Detail.(upstream.Detail); ok {
		return d
	}
	var d upstream.Detail
	if raw, err := json.Marshal(st.Detail); err == nil {
		_ = json.Unmarshal(raw, &d) // a daemon of another version says less
	}
	return d
}
