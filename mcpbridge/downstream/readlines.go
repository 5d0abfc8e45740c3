package downstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A client's answers to questions, and its cancellations, come on the same pipe as its
// requests, and a request may wait for them. So nothing on the pipe waits for what was
// before it: a large line is collected without asking for room, and its request waits
// for room on a goroutine of its own.

// maxLarge bounds the lines above [intake.Small] of one connection that have been read
// and are not done with. One line may be larger by itself.
const maxLarge = 256 << 20

// errManyLarge is wrapped by the error of a request that is not taken.
var errManyLarge = errors.New("the large requests that this connection waits for")

// ends of a line that is skipped, in which its id is looked for.
const glimpsed = 4 << 10

// Incoming is a line that a client has sent, in memory of its own.
type Incoming struct {
	Data []byte
	// Err says why the line was skipped, and ID what it asked for, if that shows.
	Err error
	ID  []byte

	large *largeLine // nil for a small one
}

// largeLine is a line that counts among those of its connection.
type largeLine struct {
	conn  *atomic.Int64
	n     int64
	once  sync.Once
	share *intake.Share // among the large requests of the process
}

// await waits until the line has its part of the budget for large requests.
func (m *Incoming) await(ctx context.Context) (err error) {
	if m.large != nil {
		m.large.share, err = intake.Requests().Take(ctx, tool.Owner, m.large.n)
	}
	return err
}

// Release says that the line is done with. More than once does nothing more.
func (m *Incoming) Release() {
	if l := m.large; l != nil {
		l.once.Do(func() {
			l.conn.Add(-l.n)
			l.share.Release()
		})
	}
}

// ReadMessages calls f for every line that is not blank, which f has released when it
// is done with it. A line of more than limit bytes is skipped, and so is a large request
// when those before it that are not done with are too many. It returns nil at the end of
// the input; a line that the end cuts off is taken as it is.
func ReadMessages(in io.Reader, limit int, f func(Incoming)) error {
	br := bufio.NewReaderSize(in, 64<<10)
	held := new(atomic.Int64)
	for {
		m, head, err := readMessage(br, limit)
		switch {
		case m.Err != nil:
			m.ID, _ = jsonrpc.Glimpse(head, m.Data)
			m.Data = nil
			f(m)
		case len(m.Data) > intake.Small:
			f(m.counted(held))
		case len(m.Data) > 0:
			f(m)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// counted takes a large line, or skips it. An answer of the client's is let through
// where a request is not.
func (m *Incoming) counted(held *atomic.Int64) Incoming {
	id, call := jsonrpc.Glimpse(m.Data[:glimpsed], m.Data[len(m.Data)-glimpsed:])
	most := int64(maxLarge)
	if id != nil && !call {
		most *= 2
	}
	n := int64(len(m.Data))
	if now := held.Add(n); now > most && now > n {
		held.Add(-n)
		return Incoming{ID: id, Err: fmt.Errorf("%w have more than %d MiB together: wait for answers before you send more, or send less with each, to which the setting servers.max_message_bytes applies", errManyLarge, maxLarge>>20)}
	}
	m.large = &largeLine{conn: held, n: n}
	return *m
}

// readMessage reads one line. Of one that is skipped, it returns the head, and the tail
// as data.
func readMessage(br *bufio.Reader, limit int) (m Incoming, head []byte, err error) {
	var line []byte
	for {
		chunk, err := br.ReadSlice('\n')
		switch {
		case m.Err != nil:
			line = append(line[max(0, len(line)-glimpsed):], chunk...)
		case len(line)+len(chunk) > limit:
			m = Incoming{Err: errors.New(tooLong(limit))}
			head = bytes.Clone(line[:min(len(line), glimpsed)])
			line = append(bytes.Clone(line[max(0, len(line)-glimpsed):]), chunk...)
		default:
			if need := len(line) + len(chunk); need > cap(line) && len(line) > 0 {
				line = slices.Grow(line, min(max(8*len(line), need), limit)-len(line))
			}
			line = append(line, chunk...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			m.Data = bytes.TrimSpace(line)
			return m, head, err
		}
	}
}
