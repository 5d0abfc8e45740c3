package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/sse"
)

// Limits are settings for all servers. Each connection and each call reads them again.
type Limits struct {
	Message int // bytes of one line, event or body of a server; 0 means 64 MiB
	Seconds int // total time of a call, with progress; 0 means unlimited
}

const maxMessage = 64 << 20

// limits returns the current settings.
func (p *Provider) limits() (l Limits) {
	if p.cfg.Limits != nil {
		l = p.cfg.Limits()
	}
	l.Message = cmp.Or(l.Message, maxMessage)
	return l
}

// errTooLarge says that a message exceeded the limit. Only its call fails.
var errTooLarge = errors.New("its answer is larger")

func tooLarge(limit int) error {
	return fmt.Errorf("%w than %s; raise the setting servers.max_message_bytes if it must be (yaya config set servers.max_message_bytes BYTES, or the variable YAYA_SERVERS__MAX_MESSAGE_BYTES where that is set), or ask the tool for less", errTooLarge, bytesOf(limit))
}

// bytesOf formats a size.
func bytesOf(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// room limits the memory of a connection's messages: the size of one, and the share of the
// budgets for large ones that they use.
type room struct {
	party string // the principal that owns the connection; "" if several share it
	// server stands in for the principal until the owner of a message is known, so that one
	// server's messages take nothing from the others.
	server string
	limit  int
	// scratch opens a private file that disappears when it is closed.
	scratch func() (*os.File, error)
}

func (s *session) room() room {
	r := room{party: s.of.principal, server: "server " + s.p.cfg.Server.Name, limit: s.p.limits().Message, scratch: intake.TempFile}
	if r.party == "" && s.of.client != "" && s.first != nil {
		who, _ := s.first.Caller()
		r.party = who.Principal
	}
	if store := s.p.cfg.Artifacts; store != nil {
		r.scratch = store.Scratch
	}
	return r
}

// payer returns the key under which a message counts in the budgets.
func (r *room) payer() string { return cmp.Or(r.party, r.server) }

// patience bounds how long a reader waits for room; later messages on its connection wait, too.
const patience = 5 * time.Second

// errNoRoom says that there was no room for a message. Only that message is lost.
var errNoRoom = errors.New("there is no room for its answer")

// filler collects a message as it arrives. A message larger than [intake.Small] goes to a file:
// a server that stalls in the middle of a message holds no memory that others wait for, and
// later messages on the same connection still arrive. The contexts of its methods bound waiting
// for room.
type filler struct {
	room
	size int             // of the message; 0 if it is not known
	buf  *bufpool.Buffer // the message, or room for pieces of one that is in a file
	file *parked
}

// more grows the buffer by n bytes.
func (f *filler) more(n int) {
	if f.buf == nil {
		f.buf = bufpool.Get(n)
		return
	}
	need := len(f.buf.B) + n
	if need <= cap(f.buf.B) {
		return
	}
	next := 8 * cap(f.buf.B)
	if cap(f.buf.B) >= trusted/2 {
		next = 2 * cap(f.buf.B) // a message of 256 KiB is not to take a megabyte
	}
	if f.size > 0 {
		next = min(next, f.size)
	}
	bigger := bufpool.Get(max(min(next, intake.Small), need))
	bigger.B = append(bigger.B, f.buf.B...)
	f.buf.Release()
	f.buf = bigger
}

// add appends a piece of a message.
func (f *filler) add(ctx context.Context, piece []byte) error {
	if f.file == nil && (f.buf == nil || len(f.buf.B)+len(piece) <= intake.Small) {
		f.more(len(piece))
		f.buf.B = append(f.buf.B, piece...)
		if len(f.buf.B) > f.limit {
			return tooLarge(f.limit)
		}
		return nil
	}
	return f.spill(ctx, piece)
}

// spill appends a piece of a large message.
func (f *filler) spill(ctx context.Context, piece []byte) error {
	if f.file == nil {
		file, err := f.scratch()
		if err != nil {
			return fmt.Errorf("%w, and cannot be put aside: %w", errNoRoom, err)
		}
		f.file = &parked{f: file, room: f.room}
		if f.buf != nil && len(f.buf.B) > 0 {
			if err := f.file.write(ctx, f.buf.B); err != nil {
				return err
			}
			f.buf.B = f.buf.B[:0]
		}
	}
	return f.file.write(ctx, piece)
}

// take returns the message, in memory or in a file, and begins with the next one.
func (f *filler) take() (*bufpool.Buffer, *parked) {
	buf, file := f.buf, f.file
	f.buf, f.file = nil, nil
	if file != nil {
		buf.Release()
		file.share.Shrink(file.size)
		return nil, file
	}
	return buf, nil
}

// drop discards the collected data.
func (f *filler) drop() {
	buf, file := f.take()
	buf.Release()
	file.close()
}

// events returns a reader of a stream's events, which collects their data in the filler.
func (f *filler) events(ctx context.Context, r io.Reader) *sse.Reader {
	out := sse.NewReader(r, f.limit)
	out.Grow = func(data []byte, n int) ([]byte, error) {
		if f.buf != nil {
			f.buf.B = data
		}
		f.more(n)
		return f.buf.B, nil
	}
	out.Most = intake.Small - 4<<10 // plus a piece of the stream
	out.Spill = func(data []byte) error {
		if f.file == nil && f.buf != nil {
			f.buf.B = f.buf.B[:0] // the reader owns it
		}
		return f.spill(ctx, data)
	}
	return out
}

// readAll reads a body of the announced size, or of unknown size if that is negative.
func (f *filler) readAll(ctx context.Context, r io.Reader, size int64) (*bufpool.Buffer, error) {
	if size > int64(f.limit) {
		return nil, tooLarge(f.limit)
	}
	defer f.drop()
	first := 16 << 10
	if size >= 0 {
		first = min(int(size), trusted)
		f.size = int(size)
	}
	f.buf = bufpool.Get(first)
	for got := int64(0); ; {
		if size >= 0 && got == size {
			break
		}
		if f.file == nil {
			f.more(1)
		}
		room := f.buf.B[len(f.buf.B):cap(f.buf.B)]
		if size >= 0 {
			room = room[:min(int64(len(room)), size-got)]
		}
		n, err := r.Read(room)
		got += int64(n)
		switch {
		case f.file != nil || len(f.buf.B)+n > intake.Small:
			if serr := f.spill(ctx, f.after(n)); serr != nil {
				return nil, serr
			}
		default:
			f.buf.B = f.buf.B[:len(f.buf.B)+n]
		}
		switch {
		case got > int64(f.limit):
			return nil, tooLarge(f.limit)
		case errors.Is(err, io.EOF) && size >= 0 && got < size:
			return nil, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil:
			size = got
		}
	}
	buf, file := f.take()
	if file != nil {
		return file.load(ctx)
	}
	return buf, nil
}

// after returns n bytes that were read beyond the buffer's content. They stay in place while
// the buffer's content goes to the file.
func (f *filler) after(n int) []byte { return f.buf.B[len(f.buf.B) : len(f.buf.B)+n] }

// trusted is how much memory an announced size gets before any data has arrived.
const trusted = 128 << 10

// asideStep is the unit in which a message reserves room in files.
const asideStep = 1 << 20

// parked is a message in a file: it is incomplete, or waits for memory.
type parked struct {
	f     *os.File
	size  int64
	room  room
	share *intake.Share // of the room in files
	held  int64
}

func noFile(why error) error {
	return fmt.Errorf("%w among the messages in files: %w; make fewer large calls at a time, or ask the tool for less", errNoRoom, why)
}

// write adds a piece of the message.
func (p *parked) write(ctx context.Context, piece []byte) error {
	need := p.size + int64(len(piece))
	if need > int64(p.room.limit) {
		return tooLarge(p.room.limit)
	}
	if need > p.held {
		n := max(asideStep, need-p.held)
		share, err := intake.Arriving().TakeSoon(ctx, p.room.payer(), n, patience)
		if err != nil {
			return noFile(err)
		}
		if p.held += n; p.share == nil {
			p.share = share
		} else {
			p.share.Add(share)
		}
	}
	if _, err := p.f.Write(piece); err != nil {
		return fmt.Errorf("%w, and cannot be put aside: %w", errNoRoom, err)
	}
	p.size = need
	return nil
}

// of charges the complete message to the principal that it is for, instead of to a server that
// several share. It reports false if the principal's share is used up; "" means that it answers
// no principal's request.
func (p *parked) of(principal string) bool {
	if principal == "" || p.room.party != "" {
		return true
	}
	if !p.share.Move(principal) {
		return false
	}
	p.room.party = principal
	return true
}

// settle is like of, but waits briefly for room. The clock of the call stands still in the
// meantime.
func (p *parked) settle(ctx context.Context, principal string) error {
	if p.of(principal) {
		return nil
	}
	limits(ctx, (*limit).pause)
	defer limits(ctx, (*limit).resume)
	share, err := intake.Arriving().TakeSoon(ctx, principal, p.size, patience)
	if err != nil {
		return noFile(err)
	}
	p.share.Release()
	p.share, p.room.party = share, principal
	return nil
}

// close discards the message. Closing nil does nothing.
func (p *parked) close() {
	if p != nil {
		_ = p.f.Close()
		p.share.Release()
	}
}

// ends returns the head and the tail of the message.
func (p *parked) ends() (head, tail []byte, err error) {
	n := min(p.size, glimpsed)
	both := make([]byte, 2*n)
	if _, err = p.f.ReadAt(both[:n], 0); err == nil {
		_, err = p.f.ReadAt(both[n:], p.size-n)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("its answer was put aside and cannot be read back: %w", err)
	}
	return both[:n], both[n:], nil
}

// handOut gives a complete message to late, or reads it back if late does not take it. A nil
// message without an error means that nothing is left to do.
func (p *parked) handOut(ctx context.Context, late func(head, tail []byte, p *parked) bool, lost func(head, tail []byte, why error) bool) (*bufpool.Buffer, error) {
	head, tail, err := p.ends()
	if err != nil {
		p.close()
		return nil, err
	}
	if late(head, tail, p) {
		return nil, nil
	}
	// A reader waits for it, but only briefly.
	share, err := intake.Unasked().TakeSoon(ctx, p.room.payer(), p.size, patience)
	if err != nil {
		p.close()
		if ctx.Err() == nil {
			lost(head, tail, fmt.Errorf("no room for a message of the server: %w", err))
			err = nil
		}
		return nil, err
	}
	return p.loadInto(share)
}

// load reads an answer back when there is memory for it, and closes the file. The clock of the
// waiting call stands still in the meantime.
func (p *parked) load(ctx context.Context) (*bufpool.Buffer, error) {
	share := intake.Answers().TryTake(p.room.payer(), p.size)
	if share == nil {
		limits(ctx, (*limit).pause)
		var err error
		share, err = intake.Answers().Take(ctx, p.room.payer(), p.size)
		limits(ctx, (*limit).resume)
		if err != nil {
			p.close()
			return nil, err
		}
	}
	return p.loadInto(share)
}

// loadInto reads the message into memory that the caller has reserved.
func (p *parked) loadInto(share *intake.Share) (*bufpool.Buffer, error) {
	defer p.close()
	buf := bufpool.Get(int(p.size))
	buf.OnRelease(share.Release)
	buf.B = buf.B[:p.size]
	if _, err := p.f.ReadAt(buf.B, 0); err != nil {
		buf.Release()
		return nil, fmt.Errorf("its answer was put aside and cannot be read back: %w", err)
	}
	return buf, nil
}
