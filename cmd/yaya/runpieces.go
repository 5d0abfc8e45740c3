package main

import (
	"fmt"
	"io"
	"strings"
)

// Bounds of what is shown of a command's output while it runs.
const (
	maxPieceLines = 40      // of one piece
	maxPieceHeld  = 4 << 10 // bytes of a line that has not ended
)

// streaming are the tools whose progress is what a command says, in pieces that end
// anywhere. Of all others, each message stands for itself.
var streaming = map[string]bool{"shell": true, "verify": true}

// pieces shows what commands say in whole lines: the beginning of one is held until the
// rest of it has come, or until the command has ended.
type pieces struct{ held map[string]string } // by call

// begin takes note of a call.
func (p *pieces) begin(id, tool string) {
	if !streaming[tool] {
		return
	}
	if p.held == nil {
		p.held = map[string]string{}
	}
	p.held[id] = ""
}

// add shows the lines that a piece completes, and reports whether the call is one of a
// command.
func (p *pieces) add(w io.Writer, id, piece string) bool {
	held, ok := p.held[id]
	if !ok {
		return false
	}
	text := held + piece
	n := strings.LastIndexByte(text, '\n') + 1
	if len(text)-n > maxPieceHeld {
		n = len(text)
	}
	p.held[id] = text[n:]
	showLines(w, text[:n])
	return true
}

// end shows what is left of a call.
func (p *pieces) end(w io.Writer, id string) {
	showLines(w, p.held[id])
	delete(p.held, id)
}

func showLines(w io.Writer, text string) {
	if text = strings.TrimRight(text, "\r\n"); text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i == maxPieceLines {
			fmt.Fprintf(w, "  … (%d more lines)\n", len(lines)-i)
			return
		}
		// A carriage return writes over the line, as progress bars do.
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		fmt.Fprintf(w, "  %s\n", printable(line, 200))
	}
}
