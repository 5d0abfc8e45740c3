package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
)

// Limits are settings for all servers. They are asked for again with each connection
// and call.
type Limits struct {
	Message int // bytes of one line, event or body of a server; 0 means 64 MiB
	Seconds int // that a call may take in all, with progress; 0 means as long as it likes
}

const maxMessage = 64 << 20

// limits returns the settings that hold now.
func (p *Provider) limits() (l Limits) {
	if p.cfg.Limits != nil {
		l = p.cfg.Limits()
	}
	l.Message = cmp.Or(l.Message, maxMessage)
	return l
}

// errTooLarge says that a message was over the limit. Its call fails, and nothing else.
var errTooLarge = errors.New("its answer is larger")

func tooLarge(limit int) error {
	return fmt.Errorf("%w than %s; raise the setting servers.max_message_bytes if it must be (yaya config set servers.max_message_bytes BYTES), or ask the tool for less", errTooLarge, bytesOf(limit))
}

// bytesOf says a size.
func bytesOf(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// room is where a connection's messages go: the limit of one, and whose part of the
// budget for large ones it is that they take.
type room struct {
	party string
	limit int
	// aside opens a file for what finds no memory at once. nil when there is nowhere
	// to put it.
	aside func() (*os.File, error)
}

func (s *session) room() room {
	r := room{party: s.of.principal, limit: s.p.limits().Message}
	if r.party == "" && s.of.client != "" && s.first != nil {
		r.party = s.first.Principal()
	}
	if store := s.p.cfg.Artifacts; store != nil {
		r.aside = store.Scratch
	}
	return r
}

// filler collects a message in a lent buffer that grows with what comes.
type filler struct {
	room
	ctx   context.Context // of who waits for memory; nil for not at all
	buf   *bufpool.Buffer
	share *intake.Share
	event int // bytes of the event in buf, where its length does not tell
}

var errNoRoom = errors.New("no memory for a large message now")

// more makes room for n more bytes. What is larger than [intake.Small] is counted: it
// takes as much as it may come to, so that nobody waits in the middle for another who
// does, too.
func (f *filler) more(n int) error {
	if f.buf == nil {
		f.buf = bufpool.Get(n)
	}
	need := len(f.buf.B) + n
	if need > f.limit {
		return tooLarge(f.limit)
	}
	if need <= cap(f.buf.B) {
		return nil
	}
	if need > intake.Small && f.share == nil {
		if f.ctx == nil {
			f.share = intake.Answers().TryTake(f.party, int64(f.limit))
			if f.share == nil {
				return errNoRoom
			}
		} else {
			var err error
			if f.share, err = intake.Answers().Take(f.ctx, f.party, int64(f.limit)); err != nil {
				return err
			}
		}
	}
	size := 8 * cap(f.buf.B)
	if f.share == nil {
		size = min(size, intake.Small)
	}
	bigger := bufpool.Get(max(min(size, f.limit), need))
	bigger.B = append(bigger.B, f.buf.B...)
	f.buf.Release()
	f.buf = bigger
	return nil
}

// grow is [sse.Reader.Grow].
func (f *filler) grow(data []byte, n int) ([]byte, error) {
	if f.buf != nil {
		f.buf.B = data
	}
	err := f.more(n)
	return f.buf.B, err
}

// takeEvent is take after an event: [sse.Reader] fills the buffer without telling.
func (f *filler) takeEvent(data []byte) *bufpool.Buffer {
	f.event = len(data)
	return f.take()
}

// take returns the message's buffer, which gives the memory back when it is released,
// and begins with the next message.
func (f *filler) take() *bufpool.Buffer {
	buf := f.buf
	if share := f.share; share != nil {
		share.Shrink(int64(max(len(buf.B), f.event)))
		buf.OnRelease(share.Release)
	}
	f.buf, f.share, f.event = nil, nil, 0
	return buf
}

// drop gives up what has been collected.
func (f *filler) drop() {
	if f.buf != nil {
		f.take().Release()
	}
}

// readAll reads a body of an announced size, or of any if that is negative.
func (f *filler) readAll(r io.Reader, size int64) (*bufpool.Buffer, error) {
	if size > int64(f.limit) {
		return nil, tooLarge(f.limit)
	}
	defer f.drop()
	first := 16 << 10
	if size >= 0 {
		first, f.limit = min(int(size), trusted), int(size)
	}
	f.buf = bufpool.Get(first)
	for {
		if size >= 0 && int64(len(f.buf.B)) == size {
			return f.take(), nil
		}
		if len(f.buf.B) == cap(f.buf.B) {
			if err := f.more(1); err != nil {
				return nil, err
			}
		}
		room := f.buf.B[len(f.buf.B):cap(f.buf.B)]
		if size >= 0 {
			room = room[:min(len(room), int(size)-len(f.buf.B))]
		}
		n, err := r.Read(room)
		f.buf.B = f.buf.B[:len(f.buf.B)+n]
		switch {
		case len(f.buf.B) > f.limit:
			return nil, tooLarge(f.limit)
		case errors.Is(err, io.EOF) && size >= 0 && int64(len(f.buf.B)) < size:
			return nil, io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return f.take(), nil
		case err != nil:
			return nil, err
		}
	}
}

// trusted is how much memory an announced size gets before anything has come.
const trusted = 128 << 10

// Messages that find no memory at once wait in files, so that those behind them on the
// same pipe do not wait for them.
const maxAside = 1 << 30 // bytes in all

var aside atomic.Int64

// parked is a message in a file.
type parked struct {
	f    *os.File
	size int64
	room room
}

func (p *parked) close() {
	_ = p.f.Close()
	aside.Add(-p.size)
}

// load brings a message back when there is memory for it, and closes the file.
func (p *parked) load(ctx context.Context) (*bufpool.Buffer, error) {
	defer p.close()
	share, err := intake.Answers().Take(ctx, p.room.party, p.size)
	if err != nil {
		return nil, err
	}
	buf := bufpool.Get(int(p.size))
	buf.OnRelease(share.Release)
	buf.B = buf.B[:p.size]
	if _, err := p.f.ReadAt(buf.B, 0); err != nil {
		buf.Release()
		return nil, fmt.Errorf("its answer was put aside and cannot be read back: %w", err)
	}
	return buf, nil
}
