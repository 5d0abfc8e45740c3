package jsonrpc

import "bytes"

// Glimpse examines the head and the tail of a message that is too large to be held: it
// returns the raw id, nil if it finds none, and whether the message is a call.
// Implementations write the id before the result or after it; Glimpse looks for both.
// The result is a guess: it is meaningless for a message that is not JSON, and nothing
// between head and tail counts.
func Glimpse(head, tail []byte) (id []byte, call bool) {
	see := func(key, value []byte) {
		switch string(key) {
		case "id":
			if id == nil && (value[0] == '"' || value[0] == '-' || (value[0] >= '0' && value[0] <= '9')) {
				id = value
			}
		case "method":
			call = true
		}
	}
	if head = bytes.TrimLeft(head, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		forward(head, see)
		backward(tail, see)
	}
	return id, call
}

// Waits returns the id of the request that data seems to be, for the error that answers
// an unreadable message: its sender waits for that id. It is nil if neither end shows
// one, and if data is not a request: ids of answers belong to the other side, and an
// error with one of them would look like the answer to another request.
func Waits(data []byte) []byte {
	const end = 4 << 10
	id, call := Glimpse(data[:min(len(data), end)], data[max(0, len(data)-end):])
	if !call || Check(id) != nil {
		return nil
	}
	return id
}

// forward visits the members at the start of an object whose values are whole.
func forward(data []byte, see func(key, value []byte)) {
	s := scanner{data: data}
	s.space()
	if s.pos >= len(data) || data[s.pos] != '{' {
		return
	}
	for {
		s.pos++ // the brace, or a comma
		s.space()
		if s.pos >= len(data) || data[s.pos] != '"' {
			return
		}
		ks, ke, _, err := s.str()
		if err != nil {
			return
		}
		s.space()
		if s.pos >= len(data) || data[s.pos] != ':' {
			return
		}
		s.pos++
		s.space()
		vs := s.pos
		if s.value(1, nil) != nil {
			return
		}
		ve := s.pos
		s.space()
		if s.pos >= len(data) || data[s.pos] != ',' {
			return
		}
		see(data[ks:ke], data[vs:ve])
	}
}

// backward visits the members at the end of an object, as long as their values are
// strings, numbers or words.
func backward(data []byte, see func(key, value []byte)) {
	at := len(data)
	space := func() {
		for at > 0 && (data[at-1] == ' ' || data[at-1] == '\t' || data[at-1] == '\r' || data[at-1] == '\n') {
			at--
		}
	}
	// str leaves at on the opening quote of the string that ends before it.
	str := func() bool {
		for at--; at > 0; {
			at--
			if data[at] != '"' {
				continue
			}
			slashes := 0
			for at-slashes > 0 && data[at-slashes-1] == '\\' {
				slashes++
			}
			if slashes%2 == 0 {
				return at-slashes > 0 // at the very start it may be escaped
			}
		}
		return false
	}
	if space(); at == 0 || data[at-1] != '}' {
		return
	}
	for {
		at-- // the brace, or a comma
		space()
		end := at
		if at == 0 || data[at-1] == '}' || data[at-1] == ']' {
			return
		}
		if data[at-1] == '"' {
			if !str() {
				return
			}
		} else {
			for at > 0 && (data[at-1] == '-' || data[at-1] == '+' || data[at-1] == '.' || (data[at-1]|0x20 >= 'a' && data[at-1]|0x20 <= 'z') || (data[at-1] >= '0' && data[at-1] <= '9')) {
				at--
			}
		}
		value := data[at:end]
		if space(); len(value) == 0 || at == 0 || data[at-1] != ':' {
			return
		}
		at--
		if space(); at == 0 || data[at-1] != '"' {
			return
		}
		end = at - 1
		if !str() {
			return
		}
		see(data[at+1:end], value)
		if space(); at == 0 || data[at-1] != ',' {
			return
		}
	}
}
