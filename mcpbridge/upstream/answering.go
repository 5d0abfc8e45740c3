package upstream

import (
	"bytes"
	"context"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Bounds of the progress that a client reports on a server's question.
const (
	maxReports    = 16              // unsent ones; later ones are dropped
	reportTimeout = 5 * time.Second // for one, and for all unsent ones at the end
)

// progressTo returns a function that forwards a client's progress on a server's question to the
// server, under the server's own token. stop ends it before the answer is sent, after all
// earlier progress has been sent.
func (s *session) progressTo(ctx context.Context, token []byte) (report func(params []byte), stop func()) {
	token = bytes.Clone(token)
	reports, done := make(chan []byte, maxReports), make(chan struct{})
	send := func(ctx context.Context, params []byte) {
		obj, err := jsonrpc.ParseObject(note{noteProgress, params}.passedOn().params)
		if err != nil {
			return
		}
		msg := jsonrpc.AppendRequest(nil, nil, noteProgress, obj.Append(nil, jsonrpc.Edit{Name: "progressToken", Value: token}))
		_ = s.t.send(ctx, msg) // no caller waits for progress
	}
	over := make(chan struct{})
	ok := s.work.Go(func() {
		defer close(over)
		for {
			select {
			case params := <-reports:
				ctx, cancel := context.WithTimeout(ctx, reportTimeout)
				send(ctx, params)
				cancel()
			case <-done:
				ctx, cancel := context.WithTimeout(ctx, reportTimeout)
				defer cancel()
				for len(reports) > 0 {
					send(ctx, <-reports)
				}
				return
			}
		}
	})
	if !ok { // the session is closing
		return func([]byte) {}, func() {}
	}
	return func(params []byte) {
			select {
			case reports <- params:
			default:
				s.p.stats.dropped.Add(1)
			}
		}, func() {
			close(done)
			<-over
		}
}
