package local

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/keyfile"
)

// Seals. Anybody who can write the log can recompute its chain. So the log
// regularly signs the chain's head with a key that is stored elsewhere: a seal is
// an entry of a special kind, and a head file beside the key names the newest one.
// [Verify] detects every change and removal of sealed entries.
const (
	// SealKeyFile and HeadFile are the names of the key and of the head file in the
	// folder of keys.
	SealKeyFile = "seal.key"
	HeadFile    = "audit.head"

	sealEvery = 1000        // entries
	sealAfter = time.Minute // after the first unsealed entry

	atStart = "start"
	atStop  = "stop"

	maxHead = 4 << 10
)

// SealOptions configure sealing.
type SealOptions struct {
	Keys *os.Root // the folder of keys, 0700; stays open as long as the log is
	// FS is the same folder, for the head file. Default: journal.Root(Keys).
	FS journal.FS
}

func (o *SealOptions) fs() journal.FS {
	if o.FS != nil {
		return o.FS
	}
	return journal.Root(o.Keys)
}

// seal is the payload of a [control.SealEvent]. It vouches for every entry before it.
type seal struct {
	At string `json:"at,omitempty"` // start or stop, "" in between
	// From is set in the first seal of a log: earlier entries were not sealed when
	// they were written.
	From    int64  `json:"from,omitempty"`
	Through int64  `json:"through"` // index of the entry before the seal
	Head    string `json:"head"`    // sum of that entry
	// Resumed reports that there was no head file at this start.
	Resumed   bool   `json:"resumed,omitempty"`
	Signature []byte `json:"sig"`
}

// message returns the bytes to sign. The index is Through+1: a seal is not valid at
// another place.
func (s seal) message(e control.Entry) []byte {
	return fmt.Appendf(nil, "yaya-audit-seal-v1\n%d\n%d\n%s\n%s\n%d\n%s\n%t\n",
		s.Through, e.Term, control.Stamp(e.Time), s.At, s.From, s.Head, s.Resumed)
}

// head is the content of the head file.
type head struct {
	Entry     int64  `json:"entry"` // index of the newest seal
	Sum       string `json:"sum"`   // of that record
	Signature []byte `json:"sig"`
}

func (h head) message() []byte {
	return fmt.Appendf(nil, "yaya-audit-head-v1\n%d\n%s\n", h.Entry, h.Sum)
}

// readHead returns the head file, nil without one.
func readHead(fsys journal.FS) (h *head, err error) {
	data, err := readFile(fsys, HeadFile, maxHead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a missing file is not an error
	}
	if err != nil {
		return nil, err
	}
	h = new(head)
	if err := json.Unmarshal(data, h); err != nil {
		return nil, &SealError{File: "keys/" + HeadFile, Problem: "the head file is damaged", Remedy: remedyHead}
	}
	return h, nil
}

// writeHead replaces the head file durably.
func writeHead(fsys journal.FS, h head) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return replace(fsys, ".", HeadFile, "."+HeadFile+".tmp", append(data, '\n'))
}

// readSealKey returns the seal key, nil without one.
func readSealKey(keys *os.Root) (ed25519.PrivateKey, error) {
	if err := keyfile.CheckFolder(keys); err != nil {
		return nil, err
	}
	key, err := keyfile.Read(keys, SealKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key file %s/%s: it is not an Ed25519 key", keys.Name(), SealKeyFile)
	}
	return private, nil
}

func makeSealKey(keys *os.Root) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	data, err := keyfile.Marshal(key)
	if err != nil {
		return nil, err
	}
	_, err = atomicfile.Write(keys, SealKeyFile, data)
	return key, err
}
