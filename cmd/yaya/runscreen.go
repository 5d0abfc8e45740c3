package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/term"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/screen"
	"github.com/yaya-ai/yaya/kernel/event"
)

// maxChange is how many lines of a change yaya run shows of a call.
const maxChange = 16

// terminalOf returns the terminal that a writer leads to, or nil if it leads elsewhere, or to a
// terminal that cannot write over a line.
func terminalOf(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor fits
		return nil
	}
	able := os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
	if runtime.GOOS == "windows" { // where the older console needs to be told
		able = os.Getenv("WT_SESSION") != ""
	}
	if !able {
		return nil
	}
	return f
}

// coloursOf returns the colours for a writer: none if it is not a terminal, or with NO_COLOR.
func coloursOf(w io.Writer) screen.Palette {
	if terminalOf(w) == nil || os.Getenv("NO_COLOR") != "" {
		return screen.Palette{}
	}
	return screen.Colours
}

// liveOf returns a writer of markdown for a terminal, and nil for another writer.
func liveOf(w io.Writer) *screen.Live {
	f := terminalOf(w)
	if f == nil {
		return nil
	}
	return screen.NewLive(f, coloursOf(w), func() (width, height int) {
		width, height, err := term.GetSize(int(f.Fd())) //nolint:gosec // a descriptor fits
		if err != nil || width < 1 || height < 1 {
			return 80, 24 // a serial line does not know its size
		}
		return width, height
	})
}

// write writes a piece of the answer: rendered on a terminal, as it is elsewhere.
func (s *show) write(text string) {
	s.text = true
	if s.live == nil {
		fmt.Fprint(s.out, s.plain(text))
		return
	}
	_ = s.live.Write(text) // as for fmt.Fprint: who reads it may be gone
}

// plain returns a piece of the answer for a writer that cannot render it: a plain terminal, or a
// file or a program, which gets the model's text.
func (s *show) plain(text string) string {
	if f, ok := s.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor fits
		return daemon.Prose(text)
	}
	return daemon.Piped(text)
}

// newline ends the line of the answer's text, if it has one.
func (s *show) newline() {
	switch {
	case !s.text:
	case s.live == nil:
		fmt.Fprintln(s.out)
	default:
		_ = s.live.End() // as for fmt.Fprintln
	}
	s.text = false
}

// change shows the lines that a call would change, on a terminal.
func (s *show) change(c event.ToolCall) {
	if terminalOf(s.err) == nil {
		return
	}
	lines, more := callargs.Change(c.Name, c.Args, maxChange)
	for _, l := range lines {
		fmt.Fprintf(s.err, "  │ %s\n", screen.Paint(screen.DiffStyle(s.colours, string(rune(l.Sign))), daemon.Printable(l.Text, 200)))
	}
	if more {
		fmt.Fprintln(s.err, "  │ …")
	}
}
