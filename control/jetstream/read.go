package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// How much one request reads.
const (
	batchEntries = 512
	batchBytes   = 1 << 20
	// askAgain is how long a read waits for its first entry before it is asked again. A server that
	// stands still gets its share of the requests, for as long as the others believe that it is there.
	askAgain = 200 * time.Millisecond
	// endOfBatch and notFound are statuses of answers to a read (batched direct get).
	endOfBatch = "204"
	notFound   = "404"
)

// read visits the entries of the stream from one to another, or to the last one that the server
// which answers has if that is 0. That server need not have all: any of them answers, whether
// there is a majority or not.
func (l *Log) read(ctx context.Context, from, to int64, visit func(stored) error) error {
	for {
		n, err := l.readBatch(ctx, from, to, visit)
		from += n
		if err != nil || n == 0 || to > 0 && from > to {
			return err
		}
	}
}

// readBatch visits a part of them, and returns how many.
func (l *Log) readBatch(ctx context.Context, from, to int64, visit func(stored) error) (n int64, err error) {
	batch := int64(batchEntries)
	if to > 0 {
		batch = min(batch, to-from+1)
	}
	ask, err := json.Marshal(map[string]int64{"seq": from, "batch": batch, "max_bytes": batchBytes})
	if err != nil {
		return 0, err
	}
	inbox := l.conn.NewInbox()
	answers, err := l.conn.SubscribeSync(inbox)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answers.Unsubscribe() }() // of a connection that may be closed
	request := func() error { return l.conn.PublishRequest("$JS.API.DIRECT.GET."+l.o.Stream, inbox, ask) }
	if err := request(); err != nil {
		return 0, err
	}
	for until := time.Now().Add(answerTime); ; {
		within := answerTime
		if n == 0 {
			within = min(askAgain, time.Until(until))
		}
		wait, cancel := context.WithTimeout(ctx, within)
		msg, err := answers.NextMsgWithContext(wait)
		cancel()
		if n == 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && time.Now().Before(until) {
			if err := request(); err != nil {
				return 0, err
			}
			continue
		}
		if err != nil {
			return n, err
		}
		switch status := msg.Header.Get("Status"); {
		case status == endOfBatch, status == notFound:
			return n, nil
		case status != "":
			return n, fmt.Errorf("the stream answers %s %s", status, msg.Header.Get("Description"))
		}
		seq, err := strconv.ParseInt(msg.Header.Get("Nats-Sequence"), 10, 64)
		if err == nil && seq < from+n { // two servers answer
			continue
		}
		if err != nil || seq != from+n {
			return n, fmt.Errorf("control log: entry %d is missing, after it comes %q", from+n, msg.Header.Get("Nats-Sequence"))
		}
		if err := visit(stored{seq, msg.Data}); err != nil {
			return n, err
		}
		n++
	}
}
