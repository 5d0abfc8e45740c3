package jetstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/yaya-ai/yaya/control"
)

// RefusedError is why a stream cannot be the log of a node. Trying again does not help.
type RefusedError struct {
	Stream  string
	Problem string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the stream %s of the control log: %s", e.Stream, e.Problem)
}

func announcements(stream string) string { return stream + ".committed" }

// config is how the stream has to be: whoever changed it could lose entries.
func config(o Options) js.StreamConfig {
	return js.StreamConfig{
		Name: o.Stream, Subjects: []string{o.Stream}, Description: "yaya: the control log",
		Retention: js.LimitsPolicy, Discard: js.DiscardNew, Storage: js.FileStorage, Replicas: o.Replicas,
		DenyDelete: true, DenyPurge: true, AllowDirect: true,
		RePublish: &js.RePublish{Source: o.Stream, Destination: announcements(o.Stream), HeadersOnly: true},
	}
}

// checkStream refuses a stream that is not one of [config], or has lost entries.
func checkStream(o Options, info *js.StreamInfo) error {
	want, c := config(o), info.Config
	refused := func(problem string, args ...any) error {
		return &RefusedError{o.Stream, fmt.Sprintf(problem, args...)}
	}
	switch {
	case len(c.Subjects) != 1 || c.Subjects[0] != want.Subjects[0] || c.RePublish == nil || c.RePublish.Destination != want.RePublish.Destination || !c.AllowDirect:
		return refused("there is another stream of that name")
	case c.Storage != js.FileStorage:
		return refused("it is in memory, where the log would be lost")
	case !c.DenyDelete || !c.DenyPurge || c.Retention != js.LimitsPolicy || c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxAge > 0 || c.MaxMsgsPerSubject > 0:
		return refused("its settings let entries be deleted")
	case info.State.Msgs > 0 && info.State.FirstSeq > 1:
		return refused("its entries before %d are missing", info.State.FirstSeq)
	}
	return nil
}

// meet makes sure that the copy of this node is the beginning of the stream. It returns the index
// of the stream's last entry.
func (l *Log) meet(ctx context.Context) (last int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := l.js.Stream(ctx, l.o.Stream)
	if errors.Is(err, js.ErrStreamNotFound) {
		return 0, &RefusedError{l.o.Stream, "it does not exist"}
	}
	if err != nil {
		return 0, err
	}
	info := s.CachedInfo()
	if err := checkStream(l.o, info); err != nil {
		return 0, err
	}
	l.seen(l.healthOf(info))
	last = int64(info.State.LastSeq) //nolint:gosec // a stream's numbers fit
	l.applying.Lock()
	defer l.applying.Unlock()
	mine, _ := l.applied()
	if mine > last {
		return 0, &RefusedError{l.o.Stream, fmt.Sprintf("it has %d entries, and this node has %d: it belongs to other nodes, or has lost some", last, mine)}
	}
	if mine > 0 {
		if err := l.compare(ctx, mine); err != nil {
			return 0, err
		}
	}
	l.met = true
	return last, nil
}

// compare compares the last entry of the copy with that of the stream; applying is held. All
// earlier ones are chained to that.
func (l *Log) compare(ctx context.Context, index int64) error {
	var there *record
	err := l.read(ctx, index, index, func(s stored) error {
		r, err := s.decode()
		there, l.sum, l.writer = &r, sumOf(s.raw), r.Run
		return err
	})
	if err != nil {
		return err
	}
	if there == nil {
		return fmt.Errorf("no server of the stream %s has entry %d at the moment", l.o.Stream, index)
	}
	same := false
	err = l.o.Copy.Read(index, func(e control.Entry) error {
		same = equal(e, there.entry(index))
		return fs.SkipAll
	})
	if err == nil && !same {
		err = &RefusedError{l.o.Stream, fmt.Sprintf("its entry %d is not the one of this node: it belongs to other nodes", index)}
	}
	return err
}

// equal reports whether two entries say the same.
func equal(a, b control.Entry) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a.Payload) != nil || json.Compact(&y, b.Payload) != nil {
		return false
	}
	return a.Term == b.Term && a.Time.Equal(b.Time) && a.Event == b.Event && a.Actor == b.Actor && a.Target == b.Target && x.String() == y.String()
}

// makeStream makes the stream, or finds it. Servers that have just started need a while until
// they can.
func makeStream(ctx context.Context, api js.JetStream, o Options) (s js.Stream, err error) {
	for until := time.Now().Add(foundTime); ; {
		attempt, cancel := context.WithTimeout(ctx, patience)
		s, err = api.CreateStream(attempt, config(o)) // the same stream is not refused
		if errors.Is(err, js.ErrStreamNameAlreadyInUse) {
			s, err = api.Stream(attempt, o.Stream)
		}
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().After(until) {
			return s, err
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
		}
	}
}

// Found makes the stream of a new cluster, and gives it the entries of a log that a node has had
// alone. It does nothing that was done already, so that it can be repeated after a failure; a
// stream with other entries is refused ([RefusedError]).
func Found(ctx context.Context, conn *nats.Conn, o Options, from control.Reader) error {
	o.fill()
	api, err := js.New(conn)
	if err != nil {
		return err
	}
	s, err := makeStream(ctx, api, o)
	if err != nil {
		return fmt.Errorf("the stream %s of the control log cannot be made: %w", o.Stream, err)
	}
	info := s.CachedInfo()
	if err := checkStream(o, info); err != nil {
		return err
	}
	have, before := int64(info.State.LastSeq), noSum //nolint:gosec // a stream's numbers fit
	return from.Read(1, func(e control.Entry) error {
		if e.Index > have {
			r := record{
				ID: fmt.Sprint("founded-", e.Index), Run: "founded", Node: o.Node, Term: e.Term, Time: e.Time, Event: e.Event, Actor: e.Actor, Target: e.Target, Payload: e.Payload, Before: before,
			}
			raw, err := json.Marshal(r)
			if err != nil {
				return err
			}
			before = sumOf(raw)
			_, err = api.Publish(ctx, o.Stream, raw, js.WithMsgID(r.ID), js.WithExpectStream(o.Stream), js.WithExpectLastSequence(uint64(e.Index-1))) //nolint:gosec // an index is positive
			return err
		}
		msg, err := s.GetMsg(ctx, uint64(e.Index)) //nolint:gosec // an index is positive
		if err != nil {
			return err
		}
		there, err := stored{e.Index, msg.Data}.decode()
		if err != nil {
			return err
		}
		if !equal(e, there.entry(e.Index)) {
			return &RefusedError{o.Stream, fmt.Sprintf("its entry %d is not the one of this node: it belongs to other nodes", e.Index)}
		}
		before = sumOf(msg.Data)
		return nil
	})
}
