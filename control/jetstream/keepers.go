package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// handOverTime is how long another server may take to lead, before it is asked again.
const handOverTime = time.Second

// Keepers are the servers that keep a log.
type Keepers struct {
	Copies int    // how many there are to be
	Leader string // "" for none
	Others []string
	Ready  []string // those of the others that have everything
}

// Keepers asks which servers keep the log.
func (l *Log) Keepers(ctx context.Context) (k Keepers, err error) {
	info, err := l.info(ctx)
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

func (l *Log) info(ctx context.Context) (*js.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	s, err := l.js.Stream(ctx, l.o.Stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// Resize changes how many servers keep the log. It does nothing if they are so many already, and fails
// while fewer servers run.
func (l *Log) Resize(ctx context.Context, copies int) error {
	info, err := l.info(ctx)
	if err != nil || info.Config.Replicas == copies {
		return err
	}
	if err := checkStream(l.o, info); err != nil {
		return err
	}
	c := info.Config
	c.Replicas = copies
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = l.js.UpdateStream(ctx, c)
	return err
}

// handOver has another server lead the log.
func (l *Log) handOver(ctx context.Context, to string) error {
	ask, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": to}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	msg, err := l.conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+l.o.Stream, ask)
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

// Alone has one server keep the log alone, which takes a copy first if it has none. It tries until ctx
// ends.
func (l *Log) Alone(ctx context.Context, server string) error {
	for {
		pause := retryAfter
		k, err := l.Keepers(ctx)
		switch {
		case err != nil:
		case k.Leader == "":
			err = errors.New("no server leads the stream")
		case k.Leader == server && len(k.Others) == 0 && k.Copies == 1:
			return nil
		case k.Leader == server:
			err = l.Resize(ctx, 1) // the one that leads stays
		case slices.Contains(k.Ready, server):
			// One that is asked again while the others vote gives up what it has just won.
			err, pause = l.handOver(ctx, server), handOverTime
		case !slices.Contains(k.Others, server):
			err = l.Resize(ctx, 2)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
