package screen

import (
	"io"
	"strconv"
	"strings"
)

// Live writes markdown to a terminal as it arrives, below earlier output and without taking over
// the screen. Until a line of the source is complete, it is written over in place.
//
// A terminal that becomes another size moves its lines, so that they cannot be found again: the
// unfinished line stays then, and is written once more in the new width.
type Live struct {
	w       io.Writer
	size    func() (width, height int)
	palette Palette

	md            *Markdown
	width, height int
	rest          string   // the unfinished line of the source
	shown         []string // its lines; the cursor stands behind the last one
}

// NewLive returns a Live for a terminal whose size is known at each time.
func NewLive(w io.Writer, p Palette, size func() (width, height int)) *Live {
	return &Live{w: w, size: size, palette: p}
}

// Write writes the next piece of a text.
func (l *Live) Write(text string) error {
	var out strings.Builder
	width, height := l.size()
	switch {
	case l.md == nil:
		l.md = New(l.palette, width-1) // terminals differ in the last column
	case width != l.width || height != l.height:
		if len(l.shown) > 0 {
			out.WriteString("\n")
			l.shown = nil
		}
		l.md.width = max(width-1, 10)
	}
	l.width, l.height = width, height
	l.rest += text
	var final []string
	for {
		line, rest, whole := strings.Cut(l.rest, "\n")
		if !whole {
			break
		}
		l.rest = rest
		final = append(final, l.md.Line(line)...)
	}
	l.put(&out, final, l.md.Peek(l.rest))
	_, err := io.WriteString(l.w, out.String())
	return err
}

// End writes the rest of a text and ends its last line. The next text starts from nothing.
func (l *Live) End() error {
	if l.md == nil {
		return nil
	}
	var out strings.Builder
	var final []string
	if l.rest != "" {
		final = l.md.Line(l.rest)
	}
	l.put(&out, append(final, l.md.End()...), nil)
	l.md, l.rest = nil, ""
	_, err := io.WriteString(l.w, out.String())
	return err
}

// put replaces the unfinished lines by ones that are final and ones that are not. Lines that have
// left the screen stay as they are.
func (l *Live) put(out *strings.Builder, final, unfinished []string) {
	lines := append(final, unfinished...)
	n, same := len(l.shown), 0
	for same < min(len(lines), n) && lines[same] == l.shown[same] {
		same++
	}
	if n > 0 && (same < n || same < len(lines)) {
		if same == len(lines) && same > 0 {
			same-- // the cursor belongs behind it
		}
		same = max(same, min(n-l.height, len(lines)-1))
		if same == n {
			out.WriteString("\n")
		} else {
			if up := n - 1 - same; up > 0 {
				out.WriteString("\x1b[" + strconv.Itoa(up) + "A")
			}
			out.WriteString("\r\x1b[J")
		}
	}
	out.WriteString(strings.Join(lines[same:], "\n"))
	if len(final) > 0 && len(unfinished) == 0 {
		out.WriteString("\n")
	}
	l.shown = unfinished
}
