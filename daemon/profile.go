package daemon

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// ErrNoProfile means that the profile that a client names does not exist.
var ErrNoProfile = downstream.ErrNoProfile

// MCPPath is the path of the MCP endpoint of a profile; "" names the usual one.
func MCPPath(profile string) string {
	if profile == "" {
		return "/mcp"
	}
	return "/mcp/" + url.PathEscape(profile)
}

// CheckProfile returns an error if the profile does not exist, before a client relies on
// it. A yaya that cannot be reached now may be reached later, and has no error.
func (b *Backend) CheckProfile(ctx context.Context, profile string) error {
	if profile == "" {
		return nil
	}
	_, err := b.rpcAt(ctx, MCPPath(profile), "server/discover", "", map[string]any{}, nil)
	if e, ok := errors.AsType[*httpRefusal](err); ok && e.Status == http.StatusNotFound {
		if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return &noProfile{refused.Message}
		}
	}
	return nil
}

// noProfile is [ErrNoProfile] in the words of the yaya that answered.
type noProfile struct{ text string }

func (e *noProfile) Error() string { return e.text }
func (e *noProfile) Unwrap() error { return ErrNoProfile }
