package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
)

// Resumption of broken streams (legacy era).
const (
	maxResumes  = 5
	resumeAfter = time.Second
	maxResume   = 30 * time.Second
)

// brokenStream says that a response stream ended before the answer.
type brokenStream struct {
	cause  error
	lastID string // "" when it cannot be resumed
	retry  time.Duration
}

func (e *brokenStream) Error() string {
	return fmt.Sprintf("the server's answer broke off: %v", e.cause)
}

func (e *brokenStream) Unwrap() error { return e.cause }

// readStream reads the stream that answers one request: notes, then the answer. A legacy server
// may end the stream early, and continue it on request.
func (t *httpTransport) readStream(ctx context.Context, body io.Reader, req *request) (reply, error) {
	r, err := t.readAnswer(ctx, body, req)
	for try := 0; try < maxResumes; try++ {
		broken, ok := errors.AsType[*brokenStream](err)
		if !ok || broken.lastID == "" || t.isModern() {
			break
		}
		wait := min(broken.retry, maxResume)
		if wait == 0 {
			wait = backoff.Pause(resumeAfter, maxResume, try)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return reply{}, ctx.Err()
		}
		if r, err = t.resume(ctx, broken, req); err == nil {
			break
		}
	}
	return r, err
}

func (t *httpTransport) isModern() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.modern
}

func (t *httpTransport) resume(ctx context.Context, broken *brokenStream, req *request) (reply, error) {
	get := newRequest(ctx, http.MethodGet, t.url, t.headers())
	get.Header.Set("Accept", "text/event-stream")
	get.Header.Set(mcp.HeaderLastEventID, broken.lastID)
	resp, err := t.client.Do(get)
	if err != nil {
		if ctx.Err() != nil {
			return reply{}, ctx.Err()
		}
		return reply{}, &brokenStream{t.classify(ctx, err), broken.lastID, broken.retry}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || mediaTypeOf(resp) != "text/event-stream" {
		return reply{}, fmt.Errorf("%w; resuming it was refused: %w", broken.cause, &statusError{code: resp.StatusCode})
	}
	r, err := t.readAnswer(ctx, resp.Body, req)
	if again, ok := errors.AsType[*brokenStream](err); ok {
		if again.lastID == "" {
			again.lastID = broken.lastID
		}
		if again.retry == 0 {
			again.retry = broken.retry
		}
	}
	return r, err
}

func (t *httpTransport) readAnswer(ctx context.Context, body io.Reader, req *request) (reply, error) {
	fill := t.filler(req)
	defer fill.drop()
	r := fill.events(ctx, body)
	want := strconv.FormatInt(req.id, 10)
	for garbage := 0; ; {
		ev, err := r.Next()
		if err != nil {
			if ctx.Err() != nil {
				return reply{}, ctx.Err()
			}
			if errors.Is(err, sse.ErrTooLarge) {
				err = tooLarge(fill.limit)
			}
			if errors.Is(err, errTooLarge) || errors.Is(err, errNoRoom) {
				return reply{}, err
			}
			return reply{}, &brokenStream{err, r.LastID(), r.Retry()}
		}
		data, buf, err := t.event(ctx, &fill, ev.Data, true)
		if err != nil {
			return reply{}, err
		}
		if data == nil {
			continue // it only carries an id to resume from
		}
		var msg jsonrpc.Message
		if err := msg.Parse(data); err != nil {
			mine := slices.Contains(claimed(data), req.id)
			if !mine {
				t.in.unread(data, err)
			}
			buf.Release()
			if mine {
				return reply{}, malformed(err)
			}
			if garbage++; garbage > maxGarbage {
				return reply{}, errGarbage
			}
			continue
		}
		switch {
		case msg.IsResponse():
			if string(msg.ID) == want {
				return reply{result: msg.Result, err: msg.Err, buf: buf}, nil
			}
			t.dropped.Add(1)
			mine := slices.Contains(claimed(data), req.id)
			buf.Release()
			if mine {
				return reply{}, malformed(errIDType)
			}
		case msg.IsRequest():
			t.in.asked(req, &msg, buf, t.answer)
		case msg.Method == noteProgress && req.listens():
			req.took(note{msg.Method, msg.Params.Raw()})
			buf.Forget()
		default:
			buf.Forget()
			t.in.note(req, msg.Method, msg.Params.Raw())
		}
	}
}

// event returns the data of an event, without secrets, or nil if it has no usable data. An
// answer in a file is read back when there is memory for it.
func (t *httpTransport) event(ctx context.Context, fill *filler, data []byte, answers bool) ([]byte, *bufpool.Buffer, error) {
	buf, file := fill.take()
	if file == nil {
		if len(data) == 0 {
			buf.Release()
			return nil, nil, nil
		}
		return t.in.conceal(data), buf, nil
	}
	var err error
	answer := false
	buf, err = file.handOut(ctx, func(head, tail []byte, _ *parked) bool {
		id, call := jsonrpc.Glimpse(head, tail)
		answer = answers && id != nil && !call
		return answer
	}, func(head, tail []byte, why error) bool {
		if id, call := jsonrpc.Glimpse(head, tail); id != nil && call {
			t.answer(jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why.Error()}))
		} else {
			t.dropped.Add(1)
		}
		return true
	})
	if answer {
		buf, err = file.load(ctx)
	}
	if buf == nil {
		return nil, nil, err
	}
	return t.in.conceal(buf.B), buf, nil
}

// listen keeps the legacy GET stream open. A server without one answers 405. If the server
// cannot be reached or has forgotten the session, the transport is lost; if only the stream
// ends, listen resumes it. The channel is closed when the first attempt has been answered.
func (t *httpTransport) listen() <-chan struct{} {
	open := make(chan struct{})
	answered := sync.OnceFunc(func() { close(open) })
	ok := t.work.Go(func() {
		defer answered()
		lastID, wait := "", time.Second
		for {
			begun := time.Now()
			var retry time.Duration
			var stop bool
			panicked := func() (err error) {
				defer func() {
					if v := recover(); v != nil {
						err = t.in.panicked(v)
					}
				}()
				retry, stop = t.listenOnce(&lastID, answered)
				return nil
			}()
			if panicked != nil {
				t.lose(panicked)
				return
			}
			if stop || t.ctx.Err() != nil {
				return
			}
			if time.Since(begun) > time.Minute {
				wait = time.Second
			}
			pause := wait
			if retry > 0 {
				pause = min(retry, time.Minute)
			}
			select {
			case <-t.ctx.Done():
				return
			case <-time.After(pause):
			}
			wait = min(2*wait, time.Minute)
		}
	})
	if !ok {
		answered()
	}
	return open
}

func (t *httpTransport) listenOnce(lastID *string, answered func()) (retry time.Duration, stop bool) {
	defer answered()
	req := newRequest(t.ctx, http.MethodGet, t.url, t.headers())
	req.Header.Set("Accept", "text/event-stream")
	if *lastID != "" {
		req.Header.Set(mcp.HeaderLastEventID, *lastID)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		_ = t.classify(t.ctx, err) // a dial error loses the transport
		return 0, t.failed() != nil
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest:
		t.mu.Lock()
		had := t.session != ""
		t.mu.Unlock()
		if had && *lastID == "" {
			t.lose(errSessionLost)
			return 0, true
		}
		if *lastID == "" {
			return 0, true
		}
		*lastID = "" // the server no longer knows the event
		return 0, false
	case resp.StatusCode != http.StatusOK:
		return 0, resp.StatusCode/100 == 4
	}
	answered()
	fill := &filler{room: t.room}
	defer fill.drop()
	r := fill.events(t.ctx, resp.Body)
	for {
		ev, err := r.Next()
		if errors.Is(err, sse.ErrTooLarge) || errors.Is(err, errTooLarge) || errors.Is(err, errNoRoom) {
			t.dropped.Add(1)
			fill.drop()
			if _, err = r.Skip(0); err == nil {
				continue
			}
		}
		if id := r.LastID(); id != "" {
			*lastID = id
		}
		if err != nil {
			return r.Retry(), false
		}
		data, buf, err := t.event(t.ctx, fill, ev.Data, false)
		if err != nil {
			return r.Retry(), false
		}
		if data == nil {
			continue
		}
		var msg jsonrpc.Message
		if msg.Parse(data) != nil {
			buf.Release()
			t.dropped.Add(1)
			continue
		}
		switch {
		case msg.IsRequest():
			t.in.asked(nil, &msg, buf, t.answer)
		case msg.IsNotification():
			buf.Forget()
			t.in.note(nil, msg.Method, msg.Params.Raw())
		default:
			buf.Release()
			t.dropped.Add(1)
		}
	}
}
