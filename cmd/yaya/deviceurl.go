package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
)

// sayConnect prints the command that connects a device, with the given URL or with the
// addresses of the running yaya.
func sayConnect(ctx context.Context, w io.Writer, b *daemon.Backend, at, flags string) error {
	var s admin.Setup
	if at == "" && b.Remote {
		if err := b.API(ctx, http.MethodGet, "/api/setup", nil, &s); err != nil {
			return fmt.Errorf("find the addresses of this yaya: %w", err)
		}
	}
	switch {
	case at != "" || len(s.URLs) == 0: // without a running yaya, nothing listens
		fmt.Fprintf(w, "\nOn the other machine: yaya connect %s %s\n", cmp.Or(at, "URL"), flags)
	case !s.Remote:
		fmt.Fprintf(w, "\nOn this machine: yaya connect %s %s\nOther machines can reach this yaya only over https (see yaya serve --help).\n", s.URLs[0], flags)
	default:
		fmt.Fprintf(w, "\nOn the other machine: yaya connect %s %s\n", s.URLs[0], flags)
		if more := s.URLs[1:]; len(more) > 0 {
			fmt.Fprintf(w, "It can also be reached at %s\n", strings.Join(more, " "))
		}
	}
	return nil
}
