package downstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Writing to clients. A write that makes no progress ends the connection. A large message goes
// out in pieces, each with its own deadline, so that a slow client gets it, too.
const (
	writeTimeout = 10 * time.Second
	pieceTimeout = 30 * time.Second // for a client that processes earlier data
	piece        = 1 << 20          // bytes
)

// inOnePiece is the size up to which a result is copied into its response: another write costs more.
const inOnePiece = 16 << 10

// parts is a message in several pieces of memory: a large answer of a server is not copied into
// the response.
type parts [][]byte

func (p parts) size() (n int) {
	for _, b := range p {
		n += len(b)
	}
	return n
}

// line returns the message without line breaks, which in JSON can stand only between
// tokens.
func (p parts) line() parts {
	out := p
	for i, b := range p {
		if l := jsonrpc.Line(b); len(b) > 0 && &l[0] != &b[0] {
			if &out[0] == &p[0] {
				out = slices.Clone(p)
			}
			out[i] = l
		}
	}
	return out
}

// joined returns the message in one piece.
func (p parts) joined() []byte {
	if len(p) == 1 {
		return p[0]
	}
	return bytes.Join(p, nil)
}

// writeTo writes the message, and renews the deadline for each piece.
func (p parts) writeTo(w io.Writer, rc *http.ResponseController) error {
	timeout := writeTimeout
	if p.size() > piece {
		timeout = pieceTimeout
	}
	left := 0 // bytes that the deadline is for
	for _, b := range p {
		for len(b) > 0 {
			if left == 0 {
				_ = rc.SetWriteDeadline(time.Now().Add(timeout)) // a writer in memory has no deadline
				left = piece
			}
			n, err := w.Write(b[:min(len(b), left)])
			if err != nil {
				return err
			}
			b, left = b[n:], left-n
		}
	}
	return nil
}

// answer handles a request and returns its response, in dst if it is small. It returns nil if
// the client has cancelled and expects no response. The response is valid until the caller
// releases x.buf.
func (s *Server) answer(ctx context.Context, dst []byte, x *exchange) parts {
	result, rerr := s.dispatch(ctx, x)
	switch {
	case errors.Is(rerr, errNoAnswer):
		if !errors.Is(context.Cause(ctx), tool.ErrStopping) {
			return nil
		}
		x.refused = cutOff(x.msg.Method)
		x.parts[0] = jsonrpc.AppendError(dst, x.msg.ID, x.refused)
		return x.parts[:1]
	case rerr != nil:
		e, ok := errors.AsType[*jsonrpc.Error](rerr)
		if !ok {
			s.cfg.Log.Error().Err(rerr).Str("method", x.msg.Method).Msg("an MCP request failed")
			e = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error"}
		}
		x.refused = e
		x.parts[0] = jsonrpc.AppendError(dst, x.msg.ID, e)
		return x.parts[:1]
	case len(result) > inOnePiece:
		head := append(append(append(dst, `{"jsonrpc":"2.0","id":`...), x.msg.ID...), `,"result":`...)
		x.parts = [3][]byte{head, result, brace}
		return x.parts[:]
	}
	x.parts[0] = jsonrpc.AppendResult(dst, x.msg.ID, result)
	return x.parts[:1]
}
