package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// handOverTime is how long another server may take to lead, before it is asked again.
const handOverTime = time.Second

// Stream is a stream of which it is decided how many servers keep it.
type Stream struct {
	conn *nats.Conn
	js   js.JetStream
	name string
}

// NewStream returns the stream of a name, which need not exist.
func NewStream(conn *nats.Conn, name string) (*Stream, error) {
	api, err := js.New(conn)
	if err != nil {
		return nil, err
	}
	return &Stream{conn, api, name}, nil
}

// Keepers are the servers that keep a stream.
type Keepers struct {
	Copies int    // how many there are to be
	Leader string // "" for none
	Others []string
	Ready  []string // those of the others that have everything
}

// Keepers asks which servers keep the log.
func (l *Log) Keepers(ctx context.Context) (Keepers, error) { return l.stream.Keepers(ctx) }

// Alone has one server keep the log alone; see [Stream.Alone].
func (l *Log) Alone(ctx context.Context, server string) error { return l.stream.Alone(ctx, server) }

// Resize changes how many servers keep the log; see [Stream.Resize].
func (l *Log) Resize(ctx context.Context, copies int) error {
	info, err := l.stream.info(ctx)
	if err != nil || info.Config.Replicas == copies {
		return err
	}
	if err := checkStream(l.o, info); err != nil {
		return err
	}
	return l.stream.resize(ctx, info.Config, copies)
}

// Keepers asks which servers keep the stream.
func (s *Stream) Keepers(ctx context.Context) (k Keepers, err error) {
	info, err := s.info(ctx)
	if err != nil {
		return k, err
	}
	k.Copies = info.Config.Replicas
	if c := info.Cluster; c != nil {
		k.Leader = c.Leader
		for _, r := range c.Replicas {
			k.Others = append(k.Others, r.Name)
			if r.Current && !r.Offline {
				k.Ready = append(k.Ready, r.Name)
			}
		}
	}
	return k, nil
}

func (s *Stream) info(ctx context.Context) (*js.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	found, err := s.js.Stream(ctx, s.name)
	if err != nil {
		return nil, err
	}
	return found.CachedInfo(), nil
}

// Resize changes how many servers keep the stream. It does nothing if they are so many already, or if
// the stream does not exist, and fails while fewer servers run.
func (s *Stream) Resize(ctx context.Context, copies int) error {
	info, err := s.info(ctx)
	if errors.Is(err, js.ErrStreamNotFound) || err == nil && info.Config.Replicas == copies {
		return nil
	}
	if err != nil {
		return err
	}
	return s.resize(ctx, info.Config, copies)
}

func (s *Stream) resize(ctx context.Context, c js.StreamConfig, copies int) error {
	c.Replicas = copies
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.js.UpdateStream(ctx, c)
	return err
}

// handOver has another server lead the stream.
func (s *Stream) handOver(ctx context.Context, to string) error {
	ask, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": to}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	msg, err := s.conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+s.name, ask)
	if err != nil {
		return err
	}
	var answer struct {
		Error *js.APIError `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return fmt.Errorf("the answer of the stream: %w", err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// Alone has one server keep the stream alone, which takes a copy first if it has none. It tries until ctx
// ends. A stream that does not exist is left so.
func (s *Stream) Alone(ctx context.Context, server string) error {
	for {
		pause := retryAfter
		k, err := s.Keepers(ctx)
		switch {
		case errors.Is(err, js.ErrStreamNotFound):
			return nil
		case err != nil:
		case k.Leader == "":
			err = errors.New("no server leads the stream")
		case k.Leader == server && len(k.Others) == 0 && k.Copies == 1:
			return nil
		case k.Leader == server:
			err = s.Resize(ctx, 1) // the one that leads stays
		case slices.Contains(k.Ready, server):
			// One that is asked again while the others vote gives up what it has just won.
			err, pause = s.handOver(ctx, server), handOverTime
		case !slices.Contains(k.Others, server):
			err = s.Resize(ctx, 2)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
