package jsonrpc

import "fmt"

// MaxBatch bounds the messages of a batch.
const MaxBatch = 50

// Batch splits an array of messages, as in protocol version 2025-03-26. The parts
// alias data; Batch checks only their syntax.
func Batch(data []byte) ([][]byte, error) {
	s := scanner{data: data}
	s.space()
	if s.pos >= len(data) || data[s.pos] != '[' {
		return nil, s.fail("expected an array")
	}
	s.pos++
	s.space()
	if s.pos < len(data) && data[s.pos] == ']' {
		return nil, fmt.Errorf("%w: the batch is empty", ErrInvalid)
	}
	var out [][]byte
	for {
		s.space()
		start := s.pos
		if err := s.value(0, nil); err != nil {
			return nil, err
		}
		if len(out) == MaxBatch {
			return nil, fmt.Errorf("%w: the batch has more than %d messages", ErrInvalid, MaxBatch)
		}
		out = append(out, data[start:s.pos:s.pos])
		s.space()
		if s.pos >= len(data) {
			return nil, s.fail("unexpected end of array")
		}
		switch c := data[s.pos]; c {
		case ',', ']':
			if s.pos++; c == ']' {
				return out, s.end()
			}
		default:
			return nil, s.fail("expected , or ]")
		}
	}
}
