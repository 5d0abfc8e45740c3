package tapes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// How much one request reads.
const (
	batchMessages = 512
	batchBytes    = 1 << 20
	// askAgain is how long a read waits for a message before it is asked again: a server that stands
	// still gets its share of the requests.
	askAgain = 200 * time.Millisecond
)

// stored is a message of a stream.
type stored struct {
	seq     uint64
	subject string
	header  nats.Header
	data    []byte
	at      time.Time
}

// last returns the last message of a subject, nil if there is none. The server that leads the stream answers.
func (t *Tapes) last(ctx context.Context, stream, subject string) (*stored, error) {
	ask, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := t.conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, ask)
	if err != nil {
		return nil, err
	}
	var got struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  string    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
		Error *js.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return nil, fmt.Errorf("the answer of the stream %s: %w", stream, err)
	}
	if got.Error != nil {
		if got.Error.ErrorCode == js.JSErrCodeMessageNotFound {
			return nil, nil //nolint:nilnil // there is none
		}
		return nil, got.Error
	}
	m := &stored{seq: got.Message.Seq, subject: got.Message.Subject, data: got.Message.Data, at: got.Message.Time}
	if got.Message.Header != "" {
		raw, err := base64.StdEncoding.DecodeString(got.Message.Header)
		if err == nil {
			m.header, err = nats.DecodeHeadersMsg(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("a message of the stream %s: %w", stream, err)
		}
	}
	return m, nil
}

// read visits the messages of a subject, which may have wildcards, in their order. The server that answers need
// not have all: it goes on asking until a message is there that is known to be.
func (t *Tapes) read(ctx context.Context, stream, subject string, least uint64, visit func(stored) error) error {
	from := uint64(1)
	for until := time.Now().Add(patience); ; {
		seen, more, err := t.batch(ctx, stream, subject, from, visit)
		if err != nil {
			return err
		}
		if seen >= from {
			from, until = seen+1, time.Now().Add(patience)
		}
		switch {
		case more:
			continue
		case from > least:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("no server of the stream %s has its message %d at the moment", stream, least)
		}
		select { // the server that has answered is behind
		case <-time.After(lookEach / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// batch visits a part of them, and returns the number of the last one, 0 for none, and whether there are more.
func (t *Tapes) batch(ctx context.Context, stream, subject string, from uint64, visit func(stored) error) (seen uint64, more bool, err error) {
	ask, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": subject, "batch": batchMessages, "max_bytes": batchBytes})
	if err != nil {
		return 0, false, err
	}
	for until := time.Now().Add(answerTime); ; {
		seen, more, err = t.batchOnce(ctx, stream, ask, visit)
		if seen > 0 || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || time.Now().After(until) {
			return seen, more, err
		}
	}
}

func (t *Tapes) batchOnce(ctx context.Context, stream string, ask []byte, visit func(stored) error) (seen uint64, more bool, err error) {
	inbox := t.conn.NewInbox()
	answers, err := t.conn.SubscribeSync(inbox)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = answers.Unsubscribe() }() // of a connection that may be closed
	if err := t.conn.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, ask); err != nil {
		return 0, false, err
	}
	for within := askAgain; ; within = answerTime {
		wait, cancel := context.WithTimeout(ctx, within)
		msg, err := answers.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			return seen, false, err
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
		case "204": // the end of the batch
			return seen, msg.Header.Get("Nats-Num-Pending") != "0" && seen > 0, nil
		case "404":
			return seen, false, nil
		default:
			return seen, false, fmt.Errorf("the stream %s answers %s %s", stream, status, msg.Header.Get("Description"))
		}
		seq, err := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
		if err != nil || msg.Header.Get("Nats-Last-Sequence") != strconv.FormatUint(seen, 10) {
			return seen, false, fmt.Errorf("messages of the stream %s before %q were lost on their way", stream, msg.Header.Get("Nats-Sequence"))
		}
		at, err := time.Parse(time.RFC3339Nano, msg.Header.Get("Nats-Time-Stamp"))
		if err != nil {
			return seen, false, fmt.Errorf("the time of a message of the stream %s: %w", stream, err)
		}
		if err := visit(stored{seq, msg.Header.Get("Nats-Subject"), msg.Header, msg.Data, at}); err != nil {
			return seen, false, err
		}
		seen = seq
	}
}
