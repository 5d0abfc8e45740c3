package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// maxEvent bounds an event, in bytes: the last one of an answer may repeat all of it.
const maxEvent = 16 << 20

// Events reads a streamed answer of OpenAI's APIs and their copies: server-sent events whose data is one
// line of JSON each. Services take the standard (WHATWG HTML §9.2) lightly, so each line with data is an
// event, with or without a blank line after it, and the last needs no line break. An error may
// be a line without "data:" or with "error:", or the whole body.
type Events struct {
	lines *bufio.Scanner
	begun bool
	whole bool // the body is JSON and not a stream
	half  bool // the line has no line break
	done  bool // [DONE] has arrived
}

// NewEvents returns a reader of a body.
func NewEvents(body io.Reader) *Events {
	e := &Events{lines: bufio.NewScanner(body)}
	e.lines.Buffer(nil, maxEvent)
	e.lines.Split(e.split)
	return e
}

// split is a [bufio.SplitFunc].
func (e *Events) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if !e.begun && len(data) > 0 {
		e.begun, e.whole = true, data[0] == '{'
	}
	if e.whole && !atEOF {
		return 0, nil, nil
	}
	if e.whole && len(data) > 0 {
		return len(data), data, nil
	}
	e.half = atEOF && bytes.IndexByte(data, '\n') < 0
	return bufio.ScanLines(data, atEOF)
}

// Next decodes the next event into v. The error is [io.EOF] at the end of the stream and from [DONE] on,
// even if the connection stays open, and an error of the contract otherwise.
func (e *Events) Next(v any) error {
	for !e.done && e.lines.Scan() {
		data, is := bytes.CutPrefix(bytes.TrimLeft(e.lines.Bytes(), "\ufeff "), []byte("data:"))
		data = bytes.TrimSpace(data)
		if failed, ok := bytes.CutPrefix(data, []byte("error:")); ok && !is && json.Valid(failed) { // of llama.cpp
			data, is = slices.Concat([]byte(`{"error":`), failed, []byte("}")), true
		}
		if before, ok := bytes.CutSuffix(data, []byte("data: [DONE]")); ok && e.whole {
			data = before
		}
		if len(data) == 0 || !is && !e.whole && !json.Valid(data) {
			continue // a comment, or another field
		}
		if string(data) == "[DONE]" {
			e.done = true
			break
		}
		err := json.Unmarshal(data, v)
		switch broke := e.lines.Err(); {
		case err == nil:
			return nil
		case broke != nil:
			return Failed(broke)
		case e.half:
			return Failed(io.ErrUnexpectedEOF)
		}
		return &llm.Error{Kind: event.LLMOther, Err: fmt.Errorf("an event of the answer: %w", err)}
	}
	err := e.lines.Err()
	switch {
	case e.done || err == nil:
		return io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return &llm.Error{Kind: event.LLMOther, Err: fmt.Errorf("an event of the answer exceeds %d bytes", maxEvent)}
	}
	return Failed(err)
}
