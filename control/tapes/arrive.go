package tapes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// arrivalDir has a folder for each session whose files are made.
const arrivalDir = "arriving"

// Copied reports whether the cluster has all that is in files of a session on this node.
func (t *Tapes) Copied(ctx context.Context, id string, files []File) (is bool, err error) {
	last, _, err := t.newest(ctx, id)
	if err != nil || last == nil {
		return false, err
	}
	dir, have, err := t.arrive(ctx, subject(id), last.seq, token(id))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, t.o.Data.RemoveAll(path.Dir(dir))) }()
	for _, f := range files {
		if _, is := have.files[f.Name]; !is {
			return false, nil
		}
		if is, err := t.begins(path.Join(dir, f.Name), f.Name); !is || err != nil {
			return false, err
		}
	}
	return true, nil
}

// arrive makes the files of a session, of which one message is known, in a folder, whose name it returns.
func (t *Tapes) arrive(ctx context.Context, subject string, least uint64, name string) (dir string, have content, err error) {
	dir = path.Join(arrivalDir, name+"."+rand.Text())
	if err := t.o.Data.MkdirAll(dir, 0o700); err != nil {
		return "", have, err
	}
	root, err := t.o.Data.OpenRoot(dir)
	if err != nil {
		return "", have, err
	}
	a := arrival{root: root, now: "0"}
	r := newReading()
	err = errors.Join(t.messages(ctx, subject, least, func(n note, data []byte) error {
		if err := r.take(n, data); err != nil { // it does not belong there
			return err
		}
		return a.take(n, data)
	}), a.close())
	if err != nil {
		return "", have, errors.Join(err, root.Close(), t.o.Data.RemoveAll(dir))
	}
	last := a.now
	if a.before != "" {
		last = a.before
	}
	if err := errors.Join(root.MkdirAll(last, 0o700), root.Close()); err != nil {
		return "", have, errors.Join(err, t.o.Data.RemoveAll(dir))
	}
	return path.Join(dir, last), r.content(), nil
}

// arrival makes files of messages.
type arrival struct {
	root   *os.Root
	now    string // the folder of what counts
	before string // that of what came before, while all files follow again
	rounds int

	name string // of the file that is open
	out  *os.File
}

func (a *arrival) take(n note, data []byte) error {
	switch n.Op {
	case opBegin:
		if err := a.close(); err != nil {
			return err
		}
		if a.before == "" {
			a.before = a.now
		} else if err := a.root.RemoveAll(a.now); err != nil {
			return err
		}
		a.rounds++
		a.now = fmt.Sprint(a.rounds)
	case opDone, opGone:
		was := a.before
		a.before = ""
		if n.Op == opGone {
			was, a.rounds = a.now, a.rounds+1
			a.now = fmt.Sprint(a.rounds)
		}
		if err := a.close(); err != nil || was == "" {
			return err
		}
		return a.root.RemoveAll(was)
	case opPart:
		return a.write(n, data)
	}
	return nil
}

// partial ends the name of a file that is not whole.
const partial = ".part"

func (a *arrival) write(n note, data []byte) error {
	if !fs.ValidPath(n.File) || strings.Contains(n.File, "\\") || n.At < 0 {
		return fmt.Errorf("%q cannot be a file of a session", n.File)
	}
	name := path.Join(a.now, n.File)
	to := name
	if n.Generation == "" {
		to += partial
	}
	if err := a.open(to, n.At == 0); err != nil {
		return err
	}
	if _, err := a.out.WriteAt(data, n.At); err != nil {
		return err
	}
	if !n.End {
		return nil
	}
	if err := a.close(); err != nil {
		return err
	}
	return hostfile.Rename(a.root, to, name)
}

// open opens a file, or leaves it open.
func (a *arrival) open(name string, fresh bool) (err error) {
	if a.name == name && !fresh {
		return nil
	}
	if err := a.close(); err != nil {
		return err
	}
	if err := a.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	flag := os.O_WRONLY | os.O_CREATE
	if fresh {
		flag |= os.O_TRUNC
	}
	a.out, err = a.root.OpenFile(name, flag, 0o600)
	a.name = name
	return err
}

// close closes the open file, whose bytes have then reached the disk.
func (a *arrival) close() error {
	if a.out == nil {
		return nil
	}
	err := errors.Join(a.out.Sync(), a.out.Close())
	a.name, a.out = "", nil
	return err
}
