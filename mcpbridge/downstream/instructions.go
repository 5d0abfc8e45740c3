package downstream

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Bounds of instructions.
const (
	maxInstructions = 32 << 10 // bytes of all servers together
	settleTimeout   = 2 * time.Second
)

// instructions returns yaya's own instructions and those of the servers that the profile shows,
// each under its server's name. A server's instructions need approval like its tools, and stay
// below its heading: their own headings are demoted. A server that calls tools gets no
// instructions of other servers.
func (s *Server) instructions(p *profile) string {
	if p.node {
		return s.own(p)
	}
	var b strings.Builder
	b.WriteString(s.cfg.Instructions)
	room, left := maxInstructions, 0
	for _, srv := range s.cfg.Router.Servers() {
		text := srv.Instructions()
		if text == "" || !p.server(srv.Name()) || p.but != "" {
			continue
		}
		part := fmt.Sprintf("# MCP server %s\n\n%s", srv.Name(), lowered(text))
		if room -= len(part); room < 0 {
			room = 0
			left++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(part)
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n\n(The instructions of %d more servers are omitted: the limit for all together is %d KiB.)", left, maxInstructions>>10)
	}
	return b.String()
}

// own returns the instructions of the one server that another node sees, as they are.
func (s *Server) own(p *profile) string {
	for _, srv := range s.cfg.Router.Servers() {
		if p.server(srv.Name()) {
			return srv.Instructions()
		}
	}
	return ""
}

// lowered demotes first-level headings by one level, so that no server can write in the name of
// another.
func lowered(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if t := strings.TrimLeft(l, " \t"); strings.HasPrefix(t, "# ") || strings.HasPrefix(t, "#\t") {
			lines[i] = "#" + t
		}
	}
	return strings.Join(lines, "\n")
}

// settle waits briefly for servers that are starting: a legacy client reads their instructions
// and capabilities only once.
func (s *Server) settle(ctx context.Context) {
	if s.cfg.Settle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	s.cfg.Settle(ctx)
}

func (s *Server) appendInstructions(dst []byte, p *profile) []byte {
	text := s.instructions(p)
	if text == "" {
		return dst
	}
	return jsonrpc.AppendString(append(dst, `,"instructions":`...), text)
}
