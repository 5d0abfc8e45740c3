package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// errNotTyped is the end of a hidden prompt without a value.
var errNotTyped = errors.New("cancelled: nothing was changed")

// readHidden asks a question on a terminal, and reads a line that the terminal does not show.
// Ctrl-C, Ctrl-D and the end of ctx cancel it: the line would be the shell's otherwise, and the
// next one typed would be taken for the value. A read cannot be interrupted; its goroutine ends
// with the program.
func readHidden(ctx context.Context, f *os.File, out io.Writer, question string) (string, error) {
	fd := int(f.Fd()) //nolint:gosec // a descriptor fits
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, state) }() // a terminal that is gone needs nothing
	type typed struct {
		line string
		err  error
	}
	answer := make(chan typed, 1)
	go func() {
		t := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{f, out}, "")
		line, err := t.ReadPassword(question)
		answer <- typed{line, err}
	}()
	select {
	case a := <-answer:
		if errors.Is(a.err, io.EOF) {
			fmt.Fprint(out, "\r\n")
			return "", errNotTyped
		}
		if errors.Is(a.err, term.ErrPasteIndicator) { // the line was pasted
			a.err = nil
		}
		return a.line, a.err
	case <-ctx.Done():
		fmt.Fprint(out, "\r\n")
		return "", fmt.Errorf("%w (%w)", errNotTyped, ctx.Err())
	}
}
