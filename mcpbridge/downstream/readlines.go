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

// A client's answers to questions, and its cancellations, arrive on the same pipe as its
// requests, and a request may wait for them. So no line waits for an earlier one: a large line
// is collected without reserving room, and its request waits for room on its own goroutine.

// maxLarge bounds the total size of one connection's unfinished lines above [intake.Small]. A
// single line may be larger.
const maxLarge = 256 << 20

// errManyLarge is wrapped by the error of a request that is refused.
var errManyLarge = errors.New("the large requests that this connection waits for")

// the kept ends of a skipped line, which are searched for its id.
const glimpsed = 4 << 10

// Incoming is a line from a client, in its own memory.
type Incoming struct {
	Data []byte
	// Err is the reason why the line was skipped, and ID the id of its request, if
	// recognizable.
	Err error
	ID  []byte

	large *largeLine // nil for a small one
}

// largeLine is a line that counts toward its connection's large lines.
type largeLine struct {
	conn  *atomic.Int64
	n     int64
	once  sync.Once
	share *intake.Share // among the large requests of the process
}

// await waits until the line has its share of the budget for large requests.
func (m *Incoming) await(ctx context.Context) (err error) {
	if m.large != nil {
		m.large.share, err = intake.Requests().Take(ctx, tool.Owner, m.large.n)
	}
	return err
}

// Release marks the line as finished. Further calls have no effect.
func (m *Incoming) Release() {
	if l := m.large; l != nil {
		l.once.Do(func() {
			l.conn.Add(-l.n)
			l.share.Release()
		})
	}
}

// ReadMessages calls f for every line that is not blank; f has to release the line when it is
// finished. ReadMessages skips a line of more than limit bytes, and a large request while too
// many earlier ones are unfinished. It returns nil at the end of the input; a last line without
// a line break counts.
func ReadMessages(in io.Reader, limit int, f func(Incoming)) error {
	br := bufio.NewReaderSize(in, 64<<10)
	held := new(atomic.Int64)
	last := 0 // size of the last line that one read did not bring: many are as long as the one before
	for {
		m, head, err := readMessage(br, limit, last)
		if len(m.Data) > br.Size() {
			last = len(m.Data) + 1
		}
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

// counted admits a large line, or skips it. It admits the client's answers even where it skips
// requests.
func (m *Incoming) counted(held *atomic.Int64) Incoming {
	id, call := jsonrpc.Glimpse(m.Data[:glimpsed], m.Data[len(m.Data)-glimpsed:])
	most := int64(maxLarge)
	if id != nil && !call {
		most *= 2
	}
	n := int64(len(m.Data))
	if now := held.Add(n); now > most && now > n {
		held.Add(-n)
		return Incoming{ID: id, Err: fmt.Errorf("%w exceed %d MiB in total: wait for answers before you send more, or send smaller requests (the setting servers.max_message_bytes limits each)", errManyLarge, maxLarge>>20)}
	}
	m.large = &largeLine{conn: held, n: n}
	return *m
}

// readMessage reads one line. For a skipped line, it returns the head, and the tail as data.
func readMessage(br *bufio.Reader, limit, last int) (m Incoming, head []byte, err error) {
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
			if need := len(line) + len(chunk); need > cap(line) && (len(line) > 0 || err != nil) {
				line = slices.Grow(line, min(max(2*need, min(last, 8*need)), limit)-len(line))
			}
			line = append(line, chunk...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			m.Data = bytes.TrimSpace(line)
			return m, head, err
		}
	}
}
