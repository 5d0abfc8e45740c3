package tapes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// The kinds of messages of a session.
const (
	opClaim = "claim" // its node owns the session from here on
	opPart  = "part"  // a part of a file
	opBegin = "begin" // all files follow again …
	opDone  = "done"  // … and were all: what came before no longer counts
	opGone  = "gone"  // the session was deleted
)

// header is the name of the header that has a [note].
const header = "Yaya"

// note is the header of a message, beside the bytes of a file.
type note struct {
	Op      string `json:"op"`
	Session string `json:"session"`
	Node    string `json:"node"`
	Run     string `json:"run"` // the lease of the node
	ID      string `json:"id"`  // of the message
	// Workspace is the folder that the session works in.
	Workspace string `json:"workspace,omitempty"`
	// File is the path of the file below the data directory.
	File string `json:"file,omitempty"`
	// Generation changes when a file that grows is another one; "" for one that is replaced as a whole.
	Generation string `json:"generation,omitempty"`
	At         int64  `json:"at,omitempty"`  // where the part begins
	End        bool   `json:"end,omitempty"` // of a file that is replaced as a whole: nothing follows
}

func (n note) message(subject string, data []byte) (*nats.Msg, error) {
	raw, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: subject, Header: nats.Header{header: {string(raw)}}, Data: data}, nil
}

func noteOf(h nats.Header) (n note, err error) {
	if err = json.Unmarshal([]byte(h.Get(header)), &n); err != nil {
		return n, fmt.Errorf("a message of a session cannot be read: %w", err)
	}
	return n, nil
}

// lease is the message in which a node says that it runs.
type lease struct {
	Run string `json:"run"` // differs for each lease of a node
	N   uint64 `json:"n"`   // counts its messages
	// Dead is the node that has declared this one dead, "" as long as it is not.
	Dead string `json:"dead,omitempty"`
}

// token is a part of a subject for a name of any characters.
func token(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// sum is a short hash of a part of a file.
func sum(data []byte) (short [16]byte) {
	long := sha256.Sum256(data)
	copy(short[:], long[:])
	return short
}

// isBehind reports whether a message was refused because it does not name the last one.
func isBehind(err error) bool {
	e, ok := errors.AsType[*js.APIError](err)
	return ok && (e.ErrorCode == js.JSErrCodeStreamWrongLastSequence || e.ErrorCode == js.JSErrCodeStreamWrongLastSequenceConstant)
}
