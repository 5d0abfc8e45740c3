package local

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/yaya-ai/yaya/internal/journal"
)

// LastFile is the name of the file in the folder of keys that names the newest entry
// between two seals, so that a log cut behind its newest seal is noticed. It has a
// line for each entry, and is emptied by the next seal. Nobody waits until the disk has
// it: it is written behind the log, and a line that a crash has cut short is ignored.
const LastFile = "audit.last"

// MaxLast bounds what is read of LastFile, in bytes: a line for each entry between two seals fits.
const MaxLast = 4 << 20

// lastMessage returns the bytes to sign.
func lastMessage(h head) []byte {
	return fmt.Appendf(nil, "yaya-audit-last-v1\n%d\n%s\n", h.Entry, h.Sum)
}

// readLast returns the newest entry that the file names, nil without one.
func readLast(fsys journal.FS, key ed25519.PublicKey) (*head, error) {
	data, err := readFile(fsys, LastFile, MaxLast)
	if errors.Is(err, fs.ErrNotExist) || key == nil {
		return nil, nil //nolint:nilnil // a missing file is not an error
	}
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(data, []byte("\n"))
	lines = lines[:len(lines)-1] // the end, or what a crash has cut short
	damaged := false
	for _, line := range slices.Backward(lines) {
		if len(line) == 0 {
			continue
		}
		h := new(head)
		if json.Unmarshal(line, h) == nil && ed25519.Verify(key, lastMessage(*h), h.Signature) {
			return h, nil
		}
		damaged = true
	}
	if damaged {
		return nil, &SealError{
			File: "keys/" + LastFile, Problem: "the file was changed, or belongs to another key",
			Remedy: "restore it from a backup, or remove it: then nobody can tell whether entries behind the newest seal were cut off",
		}
	}
	return nil, nil //nolint:nilnil // an empty file is not an error
}

// last writes LastFile; the log's write lock guards it.
type last struct {
	fs  journal.FS
	key ed25519.PrivateKey
	f   journal.File // nil until it is needed
}

// open opens the file.
func (n *last) open() (err error) {
	if n.f != nil {
		return nil
	}
	n.f, err = n.fs.Open(LastFile, journal.Append)
	if errors.Is(err, fs.ErrNotExist) {
		n.f, err = n.fs.Open(LastFile, journal.Create)
	}
	return err
}

// wrote names an entry.
func (n *last) wrote(entry int64, sum string) error {
	if err := n.open(); err != nil {
		return err
	}
	h := head{Entry: entry, Sum: sum}
	h.Signature = ed25519.Sign(n.key, lastMessage(h))
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	// It begins a line, too: the one before may have been cut short.
	_, err = n.f.Write(slices.Concat([]byte("\n"), line, []byte("\n")))
	return err
}

// empty forgets the entries, once a seal covers them.
func (n *last) empty() error {
	if err := n.open(); err != nil {
		return err
	}
	if size, err := n.f.Size(); err != nil || size == 0 {
		return err
	}
	return n.f.Truncate(0)
}

func (n *last) close() error {
	if n.f == nil {
		return nil
	}
	err := n.f.Close()
	n.f = nil
	return err
}
