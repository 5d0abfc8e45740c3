package downstream

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// landing is the outcome of a flight's work.
type landing struct {
	result []byte
	err    error
	buf    *bufpool.Buffer // holds both, if set
	kept   *kept           // holds the result instead, if set
}

// drop discards it.
func (l *landing) drop() {
	l.buf.Release()
	l.buf = nil
	l.kept.close()
}

// land hands the outcome of the work to a request.
func (x *exchange) land(l landing) ([]byte, error) {
	if l.kept != nil {
		defer l.kept.close()
		return l.kept.load(x, nil, nil)
	}
	x.buf = l.buf
	return l.result, l.err
}

// end stores the outcome of the work. While no request waits for it, it uses no share of the
// budget for responses.
func (f *flight) end(l landing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held.Release()
	switch {
	case f.gone:
		l.drop()
		return
	case f.alone:
		l = f.rest(l)
	}
	f.done <- l
}

// leave records that the waiting request is answered without the outcome; the caller holds mu.
func (f *flight) leave() {
	f.alone, f.send = true, nil
	select {
	case l := <-f.done:
		f.done <- f.rest(l)
	default:
	}
}

// abandon ends work whose outcome nobody will request.
func (f *flight) abandon(why error) {
	f.cancel(why)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	select {
	case l := <-f.done:
		l.drop()
	default:
	}
}

// rest puts the outcome aside: a large result goes to a file.
func (f *flight) rest(l landing) landing {
	defer l.buf.Release()
	if e, ok := errors.AsType[*jsonrpc.Error](l.err); ok && e.Raw != nil {
		if len(e.Raw) > intake.Small {
			return landing{err: fail(jsonrpc.CodeInternal, "the server's error has %d bytes, which is too large to keep until it is requested", len(e.Raw))}
		}
		return landing{err: &jsonrpc.Error{Raw: bytes.Clone(e.Raw)}} // it is in the buffer
	}
	if l.err != nil || len(l.result) <= intake.Small {
		return landing{result: bytes.Clone(l.result), err: l.err}
	}
	k, err := f.s.keep(f.owner, l.result)
	if err != nil {
		f.s.cfg.Log.Warn().Err(err).Int("bytes", len(l.result)).Msg("lost a large result: no request waited for it, and it could not be stored")
		return landing{err: fail(jsonrpc.CodeInternal, "the result has %d bytes and cannot be kept until it is requested: %v", len(l.result), err)}
	}
	return landing{kept: k}
}

// kept is a large result in a file.
type kept struct {
	f     *os.File
	size  int
	share *intake.Share
}

func (s *Server) keep(owner string, data []byte) (*kept, error) {
	k := &kept{size: len(data)}
	total := intake.Kept().Total() >> 20
	if k.share = intake.Kept().TryTake(owner, int64(len(data))); k.share == nil {
		return nil, fmt.Errorf("the results that wait for their clients exceed %d MiB, or half of that for one principal: request those first", total)
	}
	scratch := intake.TempFile
	if s.cfg.Artifacts != nil {
		scratch = s.cfg.Artifacts.Scratch
	}
	var err error
	if k.f, err = scratch(); err == nil {
		if _, err = k.f.Write(data); err == nil {
			return k, nil
		}
	}
	k.close()
	return nil, err
}

// close discards it. Closing nil does nothing, and closing twice has no further effect.
func (k *kept) close() {
	if k == nil {
		return
	}
	if k.f != nil {
		_ = k.f.Close()
	}
	k.share.Release()
}

// load reads the result back between head and tail, once there is room for it.
func (k *kept) load(x *exchange, head, tail []byte) ([]byte, error) {
	size := len(head) + k.size + len(tail)
	share, err := intake.Answers().Take(x.ctx, x.caller.Principal, int64(size))
	if err != nil {
		if x.ctx.Err() != nil {
			err = errNoAnswer
		}
		return nil, err
	}
	buf := bufpool.Get(size)
	buf.OnRelease(share.Release)
	out := append(buf.B, head...)[:len(head)+k.size]
	if _, err := k.f.ReadAt(out[len(head):], 0); err != nil {
		buf.Release()
		return nil, fmt.Errorf("read back a result that was put aside: %w", err)
	}
	buf.B = append(out, tail...)
	x.buf = buf
	return buf.B, nil
}

// settleFlights ends the parked flights when the server is closed.
func (s *Server) settleFlights() {
	s.mu.Lock()
	flights, tasks := s.flights, s.tasks
	s.flights, s.tasks = map[string]*flight{}, map[string]*ownTask{}
	s.mu.Unlock()
	for _, f := range flights {
		f.stopTimer()
		f.abandon(errSessionEnded)
	}
	for _, t := range tasks {
		t.f.stopTimer()
		t.drop(errSessionEnded)
	}
}

func (f *flight) stopTimer() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
}
