package proc

import (
	"os"
	"slices"
)

// pipes are a child's pipes: our ends by name, and all ends by whose they are.
type pipes struct {
	stdin, stdout, stderr, gate *os.File
	ours, theirs                []*os.File // theirs in the order of the child's descriptors
}

// end is the end of a pipe that this process keeps; it supports deadlines.
type end int

const (
	reads end = iota
	writes
)

// newPipes makes the pipes of a child; the gate, if it is held on one.
func newPipes(held bool) (p pipes, err error) {
	pipe := func(ours end) (r, w *os.File) {
		if err == nil {
			r, w, err = openPipe(ours)
		}
		return r, w
	}
	stdin, inW := pipe(writes)
	outR, stdout := pipe(reads)
	widen(inW)
	widen(outR)
	errR, stderr := pipe(reads)
	var gate *os.File
	if held {
		gate, p.gate = pipe(writes)
	}
	p.stdin, p.stdout, p.stderr = inW, outR, errR
	isNil := func(f *os.File) bool { return f == nil }
	p.theirs = slices.DeleteFunc([]*os.File{stdin, stdout, stderr, gate}, isNil)
	p.ours = slices.DeleteFunc([]*os.File{inW, outR, errR, p.gate}, isNil)
	if err != nil {
		closeAll(p.ours)
		closeAll(p.theirs)
	}
	return p, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
