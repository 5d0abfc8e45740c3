package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/yaya-ai/yaya/daemon"
)

// Bounds on the output that is shown while a command runs.
const (
	maxPieceLines = 40      // lines of one piece
	maxPieceHeld  = 4 << 10 // bytes of an unfinished line
)

// streaming lists the tools whose progress messages are pieces of a command's output, cut
// anywhere. Progress messages of other tools are complete.
var streaming = map[string]bool{"shell": true, "verify": true}

// pieces prints command output in whole lines: it holds the beginning of a line until the rest
// arrives or the command ends.
type pieces struct{ held map[string]string } // keyed by call

// begin registers a call.
func (p *pieces) begin(id, tool string) {
	if !streaming[tool] {
		return
	}
	if p.held == nil {
		p.held = map[string]string{}
	}
	p.held[id] = ""
}

// add prints the lines that a piece completes. It reports whether the call runs a command.
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

// end prints the rest of a call's output.
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
		// A carriage return overwrites the line, as progress bars do.
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		fmt.Fprintf(w, "  %s\n", daemon.Printable(line, 200))
	}
}
