// Package worded makes errors whose text is for people alone. The wrapped errors are for
// programs: "context deadline exceeded" names a timer, but does not tell a person what
// took too long. Its functions are safe for concurrent use.
package worded

import "fmt"

type worded struct {
	text string
	err  error
}

func (w *worded) Error() string { return w.text }
func (w *worded) Unwrap() error { return w.err }

// Error returns an error that wraps err and does not quote it: its text is the format's,
// as of [fmt.Sprintf].
func Error(err error, format string, args ...any) error {
	return &worded{fmt.Sprintf(format, args...), err}
}
