package masked

// inJSON returns the spans to hide in a JSON document so that it stays valid JSON. A
// span stays within its string, and contains escapes completely; a number becomes a
// string; other content between strings stays. If doc is not JSON, it is treated as
// text.
func inJSON(doc []byte, spans []span) []span {
	if i := blank(doc, 0); doc[i] != '{' && doc[i] != '[' && doc[i] != '"' {
		return spans
	}
	var out []span
	keep := func(s span) {
		if n := len(out); s.to > s.from && (n == 0 || s.from >= out[n-1].to) {
			out = append(out, s)
		} else if n > 0 && s.to > out[n-1].to {
			out[n-1].to, out[n-1].with = s.to, nil
		}
	}
	for i := 0; i < len(doc) && len(spans) > 0; {
		if doc[i] != '"' {
			end := i
			for end < len(doc) && doc[end] != '"' {
				end++
			}
			for _, s := range spans {
				if s.from >= end {
					break
				}
				if from, to := number(doc, max(s.from, i), i, end); to > from {
					keep(span{from, to, []byte(`"` + Mask + `"`)})
				}
			}
			spans = behind(spans, end)
			i = end
			continue
		}
		end, _ := stringEnd(doc, i)
		for _, s := range spans {
			if s.from >= end {
				break
			}
			if s.from <= i || s.to > end {
				s = span{from: max(s.from, i+1), to: min(s.to, end)}
			}
			keep(whole(doc, s, i+1, end))
		}
		spans = behind(spans, end+1)
		i = end + 1
	}
	return out
}

// behind returns the spans that do not end before there.
func behind(spans []span, end int) []span {
	for len(spans) > 0 && spans[0].to <= end {
		spans = spans[1:]
	}
	return spans
}

// number returns the number that text[at] is a digit of, between two strings.
func number(text []byte, at, from, to int) (int, int) {
	digit := func(i int) bool {
		c := text[i]
		return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c|0x20 == 'e'
	}
	if at >= to || !digit(at) || text[at]|0x20 == 'e' {
		return 0, 0
	}
	first, last := at, at
	for first > from && digit(first-1) {
		first--
	}
	for last < to && digit(last) {
		last++
	}
	return first, last
}

// whole makes a span in a string begin and end between its escapes.
func whole(text []byte, s span, from, to int) span {
	grown := s
	for i := max(from, s.from-5); i < s.from; i++ {
		if text[i] == '\\' && slashes(text, i)%2 == 0 {
			if end := i + escapeLen(text[i:to]); end > s.from {
				grown.from = i
				break
			}
			i++ // what it escapes
		}
	}
	for i := max(from, s.to-5); i < s.to; i++ {
		if text[i] == '\\' && slashes(text, i)%2 == 0 {
			if end := i + escapeLen(text[i:to]); end > s.to {
				grown.to = min(end, to)
				break
			}
			i++
		}
	}
	if grown.from != s.from || grown.to != s.to {
		grown.with = nil
	}
	return grown
}

// escapeLen returns the length of the JSON escape at the beginning of text.
func escapeLen(text []byte) int {
	if len(text) > 1 && text[1] == 'u' {
		return min(6, len(text))
	}
	return min(2, len(text))
}
