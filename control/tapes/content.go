package tapes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxFiles bounds the files of a session.
const maxFiles = 10_000

// known is a file of a session as the stream has it.
type known struct {
	File
	from int64    // where the last part of it begins …
	sum  [16]byte // … and the hash of that
}

// content lists what the stream has of a session.
type content struct {
	files  map[string]known
	waste  int64 // bytes that no longer count
	broken bool  // all files were to follow again, and did not
}

// reading follows the messages of a session.
type reading struct {
	now     content
	before  *content         // while all files follow again
	growing map[string]int64 // how much there is of files that are not whole yet
}

func newReading() *reading {
	return &reading{now: content{files: map[string]known{}}, growing: map[string]int64{}}
}

// take follows a message.
func (r *reading) take(n note, data []byte) error {
	switch n.Op {
	case opBegin:
		if r.before == nil {
			was := r.now
			r.before = &was
		}
		r.now = content{files: map[string]known{}}
		clear(r.growing)
	case opDone:
		r.before = nil
	case opGone:
		*r = *newReading()
	case opPart:
		return r.add(n, data)
	}
	return nil
}

// content returns what the messages so far amount to.
func (r *reading) content() content {
	if r.before == nil {
		return r.now
	}
	c := *r.before
	c.broken = true
	return c
}

// add adds a part of a file.
func (r *reading) add(n note, data []byte) error {
	c, size := &r.now, int64(len(data))
	was, is := c.files[n.File]
	if !is && len(c.files) >= maxFiles {
		return fmt.Errorf("the session has more than %d files", maxFiles)
	}
	missing := fmt.Errorf("the part of %s at %d does not follow what came before", n.File, n.At)
	if n.Generation != "" {
		switch {
		case n.At == 0:
			c.waste += was.Size
		case !is || was.Generation != n.Generation || was.Size != n.At:
			return missing
		}
		c.files[n.File] = known{File{n.File, n.Generation, n.At + size}, n.At, sum(data)}
		return nil
	}
	if n.At == 0 {
		r.growing[n.File] = 0
	}
	if r.growing[n.File] != n.At {
		return missing
	}
	if r.growing[n.File] += size; n.End {
		c.waste += was.Size
		c.files[n.File] = known{File{n.File, "", r.growing[n.File]}, n.At, sum(data)}
	}
	return nil
}

// messages visits the messages of a session, of which one is known. Its node may send others meanwhile.
func (t *Tapes) messages(ctx context.Context, subject string, least uint64, visit func(n note, data []byte) error) error {
	return t.read(ctx, sessions, subject, least, func(m stored) error {
		n, err := noteOf(m.header)
		if err != nil {
			return err
		}
		return visit(n, m.data)
	})
}

// index returns what the stream has of a session, of which one message is known.
func (t *Tapes) index(ctx context.Context, subject string, least uint64) (content, error) {
	r := newReading()
	err := t.messages(ctx, subject, least, r.take)
	return r.content(), err
}

// equal reports whether a file of this node ends with what the stream has last of it, or goes on behind that.
func (t *Tapes) equal(name string, there known) (is bool, err error) {
	f, err := t.o.Data.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, there.Size-there.from)
	n, err := f.ReadAt(buf, there.from)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return n == len(buf) && sum(buf) == there.sum, nil
}

// begins reports whether a file begins with all of another one.
func (t *Tapes) begins(name, with string) (is bool, err error) {
	long, err := t.o.Data.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, long.Close()) }()
	short, err := t.o.Data.Open(with)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, short.Close()) }()
	a, b := make([]byte, maxPart), make([]byte, maxPart)
	for at := int64(0); ; {
		n, err := short.ReadAt(a, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		m, merr := long.ReadAt(b[:n], at)
		if merr != nil && !errors.Is(merr, io.EOF) {
			return false, merr
		}
		if m < n || !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
		if at += int64(n); err != nil {
			return true, nil
		}
	}
}

// listed returns the files of a content.
func (c content) listed() map[string]File {
	out := make(map[string]File, len(c.files))
	for name, f := range c.files {
		out[name] = f.File
	}
	return out
}
