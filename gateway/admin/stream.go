package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/sse"
)

// Limits of streams.
const (
	maxStreams   = 64
	streamAlive  = 15 * time.Second
	streamWrites = 10 * time.Second
)

// Close ends the streams; others wait for the listener to be drained.
func (a *API) Close() { a.closing() }

// enter claims a place among the streams.
func (a *API) enter() error {
	if a.streams.Add(1) > maxStreams {
		a.streams.Add(-1)
		return api.Fail(http.StatusServiceUnavailable, "there are %d streams already: close some, or come back later", maxStreams)
	}
	return nil
}

// item is an event of a stream.
type item struct {
	name string
	id   int64 // 0 for an event without one
	data any
}

// stream answers with server-sent events: next returns those that there are now, and
// news what to wait for when there are none.
func (a *API) stream(next func() ([]item, error), news func() <-chan struct{}) (*huma.StreamResponse, error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer a.streams.Add(-1)
		r, w := humago.Unwrap(c)
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		rc := http.NewResponseController(w)
		buf := []byte(": here\n\n")
		alive := time.NewTimer(streamAlive)
		defer alive.Stop()
		for {
			more := news() // before looking, so that nothing is missed
			items, err := next()
			for _, it := range items {
				if err == nil {
					buf, err = appendItem(buf, it)
				}
			}
			if err == nil {
				err = rc.SetWriteDeadline(time.Now().Add(streamWrites))
			}
			if err == nil || errors.Is(err, http.ErrNotSupported) {
				_, err = w.Write(buf)
			}
			if err = errors.Join(err, rc.Flush()); err != nil {
				if r.Context().Err() == nil {
					a.cfg.Log.Debug().Err(err).Msg("a stream has ended")
				}
				return
			}
			if buf = buf[:0]; len(items) > 0 {
				continue
			}
			alive.Reset(streamAlive)
			select {
			case <-more:
			case <-alive.C:
				buf = append(buf, ": keep-alive\n\n"...)
			case <-r.Context().Done():
				return
			case <-a.closed:
				return
			}
		}
	}}, nil
}

func appendItem(dst []byte, it item) ([]byte, error) {
	data, err := json.Marshal(it.data)
	if err != nil {
		return nil, err
	}
	ev := sse.Event{Name: it.name, Data: data}
	if it.id > 0 {
		ev.ID = strconv.FormatInt(it.id, 10)
	}
	return sse.Append(dst, ev)
}
