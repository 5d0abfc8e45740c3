package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/yaya-ai/yaya/control"
)

// Append implements [control.Log].
func (l *Log) Append(ctx context.Context, c control.Change, check func() error) (control.Entry, error) {
	payload, err := c.Marshal()
	if err != nil {
		return control.Entry{}, err
	}
	l.write.Lock()
	defer l.write.Unlock()
	l.appending.Store(true)
	defer func() { // entries of others may have come meanwhile
		l.appending.Store(false)
		l.caughtUp()
	}()
	r := record{ID: uuid.NewString(), Run: l.run, Node: l.o.Node, Event: c.Event, Actor: c.Actor, Target: c.Target, Payload: payload}
	for {
		if err := ctx.Err(); err != nil {
			return control.Entry{}, err
		}
		after, err := l.prepare(&r, check)
		if err != nil {
			return control.Entry{}, err
		}
		e, err := l.propose(ctx, r, after)
		if err != nil || e.Index > 0 {
			return e, err
		}
		// Another node was first: check again when its entry is applied.
	}
}

// prepare runs the check, and makes the record follow the last entry, whose index it returns.
func (l *Log) prepare(r *record, check func() error) (after int64, err error) {
	l.applying.Lock()
	defer l.applying.Unlock()
	switch {
	case l.ctx.Err() != nil:
		return 0, fmt.Errorf("%w: it is closed", control.ErrUnavailable)
	case l.err != nil:
		return 0, fmt.Errorf("%w: %w", control.ErrUnavailable, l.err)
	case !l.met:
		return 0, fmt.Errorf("%w: the stream %s cannot be reached", control.ErrUnavailable, l.o.Stream)
	}
	if check != nil {
		if err := check(); err != nil {
			return 0, err
		}
	}
	after, r.Term = l.applied()
	if l.writer != l.run {
		r.Term++
	}
	r.Before = l.sum
	r.Time = l.o.Now().UTC().Truncate(time.Millisecond)
	l.proposed, l.taken = r.ID, 0
	return after, nil
}

// propose appends a record behind an entry, and applies it. It returns no entry and no error when
// another one has come between. ctx only ends waiting for others: what was sent may be
// written, and has its time to be found.
func (l *Log) propose(ctx context.Context, r record, after int64) (control.Entry, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return control.Entry{}, err
	}
	sent := false
	for until := time.Now().Add(patience); ; {
		index, err := l.publish(r.ID, raw, after)
		switch {
		case err == nil:
			return l.mine(r, raw, index)
		case isWrongLast(err):
			// Another entry is there; or this one, and the answer to its first attempt was lost.
			index, err := l.outcome(ctx, after, time.Until(until))
			switch {
			case err != nil && sent:
				return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUncertain, err)
			case err != nil:
				return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
			case index == 0:
				return control.Entry{}, nil
			}
			return r.entry(index), nil
		case isRefused(err) && !sent:
			return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
		}
		sent = sent || !isRefused(err) && !errors.Is(err, js.ErrNoStreamResponse)
		if time.Now().After(until) || l.ctx.Err() != nil {
			if sent {
				return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUncertain, err)
			}
			return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
		}
		select { // a leader may be about to be elected
		case <-time.After(retryAfter):
		case <-l.ctx.Done():
		}
	}
}

// publish sends a record once.
func (l *Log) publish(id string, raw []byte, after int64) (int64, error) {
	ctx, cancel := context.WithTimeout(l.ctx, answerTime)
	defer cancel()
	msg := &nats.Msg{Subject: l.o.Stream, Data: raw}
	ack, err := l.js.PublishMsg(ctx, msg, js.WithMsgID(id), js.WithExpectStream(l.o.Stream), js.WithExpectLastSequence(uint64(after)), js.WithRetryAttempts(0)) //nolint:gosec // an index is not negative
	if err != nil {
		return 0, err
	}
	return int64(ack.Sequence), nil //nolint:gosec // a stream's numbers fit
}

func isWrongLast(err error) bool {
	e, ok := errors.AsType[*js.APIError](err)
	return ok && (e.ErrorCode == js.JSErrCodeStreamWrongLastSequence || e.ErrorCode == js.JSErrCodeStreamWrongLastSequenceConstant)
}

// isRefused reports whether the stream has answered that it does not take a record.
func isRefused(err error) bool {
	_, ok := errors.AsType[*js.APIError](err)
	return ok
}

// mine applies an entry of this node that is in the stream.
func (l *Log) mine(r record, raw []byte, index int64) (control.Entry, error) {
	l.applying.Lock()
	defer l.applying.Unlock()
	err := l.apply(stored{index, raw})
	if err != nil {
		err = fmt.Errorf("%w: %w", control.ErrUncertain, err)
	}
	return r.entry(index), err
}

// outcome waits for the entry behind another one, and returns the index of the append of this
// node, 0 if it is not in the log.
func (l *Log) outcome(ctx context.Context, after int64, within time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := l.catchUp(ctx, after+1); err != nil {
		return 0, err
	}
	l.applying.Lock()
	defer l.applying.Unlock()
	return l.taken, nil
}
