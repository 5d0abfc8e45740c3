package wire

import (
	"strings"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// Streams: the text of an assistant's message while it is written.
const (
	streamDelay  = 25 * time.Millisecond // a chunk holds the text that arrives in that time
	maxChunk     = 64 << 10              // bytes
	maxStream    = 1 << 20               // bytes that are kept of one stream
	maxStreams   = 8                     // that are kept of one agent
	streamKept   = 60 * time.Second      // after the end
	maxRetry     = 1000                  // chunks that one stream_retry asks for
	streamStart  = "stream_start"
	streamChunk  = "stream_chunk"
	streamEnd    = "stream_end"
	streamFailed = "stream_error"
)

// StreamStart begins a stream.
type StreamStart struct {
	Type      string `json:"type"` // "stream_start"
	RequestID string `json:"request_id"`
	Time      string `json:"ts"`
}

// StreamChunk is a part of it. Numbers start at 0.
type StreamChunk struct {
	Type      string `json:"type"` // "stream_chunk"
	RequestID string `json:"request_id"`
	Chunk     string `json:"chunk"`
	Seq       int    `json:"seq"`
}

// StreamEnd ends it.
type StreamEnd struct {
	Type        string `json:"type"` // "stream_end"
	RequestID   string `json:"request_id"`
	TotalChunks int    `json:"total_chunks"`
	Time        string `json:"ts"`
}

// StreamError ends it, too.
type StreamError struct {
	Type      string `json:"type"` // "stream_error"
	RequestID string `json:"request_id"`
	Error     string `json:"error"`
	Time      string `json:"ts"`
}

// stream is one stream with its chunks, those of the beginning left out when they
// are too many. It is guarded by its feed.
type stream struct {
	id      string
	pending strings.Builder
	chunks  []string
	first   int // number of chunks[0]
	size    int
	ended   time.Time
	last    *Event // stream_end or stream_error
}

func (s *stream) total() int { return s.first + len(s.chunks) }

// add appends text and returns the chunks that are full.
func (s *stream) add(text string) (full []Event) {
	s.pending.WriteString(text)
	for s.pending.Len() >= maxChunk {
		all := s.pending.String()
		cut := maxChunk
		for cut > maxChunk-4 && !startsRune(all[cut:]) {
			cut--
		}
		s.pending.Reset()
		full = append(full, s.chunk(all[:cut]))
		s.pending.WriteString(all[cut:])
	}
	return full
}

func startsRune(s string) bool { return s == "" || s[0]&0xC0 != 0x80 }

// flush returns what is pending as a chunk.
func (s *stream) flush() (Event, bool) {
	if s.pending.Len() == 0 {
		return Event{}, false
	}
	text := s.pending.String()
	s.pending.Reset()
	return s.chunk(text), true
}

func (s *stream) chunk(text string) Event {
	e := s.event(s.total(), text)
	s.chunks = append(s.chunks, text)
	s.size += len(text)
	for s.size > maxStream {
		s.size -= len(s.chunks[0])
		s.chunks[0] = ""
		s.chunks, s.first = s.chunks[1:], s.first+1
	}
	return e
}

func (s *stream) event(seq int, text string) Event {
	return Event{Name: streamChunk, Payload: StreamChunk{streamChunk, s.id, text, seq}, Soon: true}
}

// again returns chunk seq, if it is still there.
func (s *stream) again(seq int) (Event, bool) {
	if seq < s.first || seq >= s.total() {
		return Event{}, false
	}
	return s.event(seq, s.chunks[seq-s.first]), true
}

// replay returns the stream as it is so far.
func (s *stream) replay(now time.Time) []Event {
	out := []Event{s.start(now)}
	for i, text := range s.chunks {
		out = append(out, s.event(s.first+i, text))
	}
	return out
}

func (s *stream) start(now time.Time) Event {
	return Event{Name: streamStart, Payload: StreamStart{streamStart, s.id, control.Stamp(now)}}
}

// end ends the stream, with an error unless that is "".
func (s *stream) end(now time.Time, failure string) Event {
	e := Event{Name: streamEnd, Payload: StreamEnd{streamEnd, s.id, s.total(), control.Stamp(now)}}
	if failure != "" {
		e = Event{Name: streamFailed, Payload: StreamError{streamFailed, s.id, failure, control.Stamp(now)}}
	}
	s.ended, s.last = now, &e
	return e
}
