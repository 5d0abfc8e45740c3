package client

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// missingAfter is how long a chunk may be missing before it is asked for again.
const missingAfter = 5 * time.Second

// Limits of what is put together.
const (
	maxHeld    = 10_000 // chunks that wait for one before them
	maxStreams = 64
)

// Stream is one stream, put together.
type Stream struct {
	RequestID string
	Text      string // as far as it is known without a gap
	Done      bool
	Err       string // why it has failed, if Done
}

// Streams puts the streams of an agent together, whatever order their chunks come
// in. Give it the events of the agent's channel. Its zero value is ready for
// use, once the functions are set; Close ends its timers.
type Streams struct {
	// OnText gets each piece of text as soon as it is its turn, and the stream as it
	// is now. Calls follow each other; they must not call back.
	OnText func(piece string, s Stream)
	// Retry asks for chunks again: it pushes stream_retry. It must not block.
	Retry func(requestID string, missing []int)

	mu      sync.Mutex
	streams map[string]*assembly
	closed  bool
}

type assembly struct {
	s     Stream
	text  strings.Builder
	next  int
	held  map[int]string
	total int // -1 while it is not known
	timer *time.Timer
}

// Event takes in an event of the agent's topic; what is of no stream is ignored.
func (x *Streams) Event(e Event) {
	switch e.Name {
	case "stream_start", "stream_chunk", "stream_end", "stream_error":
	default:
		return
	}
	var p struct {
		RequestID string `json:"request_id"`
		Chunk     string `json:"chunk"`
		Seq       int    `json:"seq"`
		Total     int    `json:"total_chunks"`
		Error     string `json:"error"`
	}
	if json.Unmarshal(e.Payload, &p) != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.assembly(p.RequestID)
	if a == nil || a.s.Done {
		return
	}
	switch e.Name {
	case "stream_chunk":
		if _, twice := a.held[p.Seq]; p.Seq < a.next || twice || len(a.held) >= maxHeld {
			return
		}
		a.held[p.Seq] = p.Chunk
	case "stream_end":
		a.total = p.Total
	case "stream_error":
		a.s.Done, a.s.Err = true, p.Error
	}
	x.advance(a)
}

func (x *Streams) assembly(id string) *assembly {
	if a := x.streams[id]; a != nil || x.closed {
		return a
	}
	if x.streams == nil {
		x.streams = map[string]*assembly{}
	}
	if len(x.streams) >= maxStreams {
		for id, a := range x.streams {
			if a.s.Done {
				delete(x.streams, id)
			}
		}
		if len(x.streams) >= maxStreams {
			return nil
		}
	}
	a := &assembly{s: Stream{RequestID: id}, held: map[int]string{}, total: -1}
	x.streams[id] = a
	return a
}

// advance passes on what is in order now; mu is held.
func (x *Streams) advance(a *assembly) {
	var piece strings.Builder
	for {
		text, ok := a.held[a.next]
		if !ok {
			break
		}
		delete(a.held, a.next)
		a.next++
		piece.WriteString(text)
	}
	a.text.WriteString(piece.String())
	a.s.Text = a.text.String()
	if a.total >= 0 && a.next >= a.total {
		a.s.Done = true
	}
	gap := !a.s.Done && (len(a.held) > 0 || a.total >= 0)
	switch {
	case !gap && a.timer != nil:
		a.timer.Stop()
		a.timer = nil
	case gap && (a.timer == nil || piece.Len() > 0):
		if a.timer != nil {
			a.timer.Stop()
		}
		a.timer = time.AfterFunc(missingAfter, func() { x.missing(a) })
	}
	if (piece.Len() > 0 || a.s.Done) && x.OnText != nil {
		x.OnText(piece.String(), a.s)
	}
}

// missing asks for what has not come.
func (x *Streams) missing(a *assembly) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || a.s.Done {
		return
	}
	last := a.total
	for seq := range a.held {
		last = max(last, seq)
	}
	var seqs []int
	for seq := a.next; seq < last && len(seqs) < 1000; seq++ {
		if _, ok := a.held[seq]; !ok {
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) > 0 && x.Retry != nil {
		x.Retry(a.s.RequestID, seqs)
	}
	a.timer = time.AfterFunc(missingAfter, func() { x.missing(a) })
}

// Close ends the timers.
func (x *Streams) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, a := range x.streams {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
}
