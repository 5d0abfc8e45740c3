package daemon

import "context"

// WithSandbox runs f with the daemon, whose environment counts, or with what the
// settings and this machine say if none runs.
func WithSandbox(ctx context.Context, g *Flags, f func(*Backend) error) error {
	return WithStore(ctx, g, f, g.SandboxAlone)
}
