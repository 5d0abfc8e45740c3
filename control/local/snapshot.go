package local

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// StateFile is the name, below the data directory, of the snapshot: what the entries up
// to a seal have led to. A start reads it and the entries behind it. It follows from
// the segments: without it a start reads all of them and makes another.
const StateFile = folder + "/state.json"

const (
	stateFormat = 1
	maxState    = 256 << 20
	sigIntro    = `,"sig":"`
)

// snapshot is the content of the state file, without its signature.
type snapshot struct {
	Format   int                        `json:"format"`
	Entry    int64                      `json:"entry"` // a seal
	Sum      string                     `json:"sum"`   // of that record
	Term     int64                      `json:"term"`
	Seals    sealState                  `json:"seals"`
	Segments []segmentRecord            `json:"segments"` // up to that entry
	State    map[string]json.RawMessage `json:"state"`    // by the part of the projection
}

// segmentRecord is a segment in the state file.
type segmentRecord struct {
	First  int64     `json:"first"`
	Last   int64     `json:"last"`
	Size   int64     `json:"size"`
	Sum    string    `json:"sum"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Events []string  `json:"events,omitempty"`
}

func (r segmentRecord) segment() segment {
	return segment{control.Block{First: r.First, Last: r.Last, Since: r.Since, Until: r.Until, Events: r.Events}, r.Size, r.Sum}
}

func (s segment) record() segmentRecord {
	return segmentRecord{s.First, s.Last, s.Size, s.Sum, s.Since, s.Until, s.Events}
}

// segments returns the list of segments.
func (s *snapshot) segments() []segment {
	out := make([]segment, 0, len(s.Segments)+1)
	for _, r := range s.Segments {
		out = append(out, r.segment())
	}
	return out
}

// before returns the place before the first entry of the newest segment.
func (s *snapshot) before() place {
	if n := len(s.Segments); n > 1 {
		return place{s.Segments[n-2].Last, s.Segments[n-2].Sum}
	}
	return begin
}

// stateMessage returns the bytes to sign.
func stateMessage(body []byte) []byte { return append([]byte("yaya-control-state-v1\n"), body...) }

// write replaces the state file durably.
func (s *snapshot) write(fsys journal.FS, key ed25519.PrivateKey) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(body) > maxState {
		return fmt.Errorf("%s would have %d bytes, and may have %d", StateFile, len(body), maxState)
	}
	sig := base64.StdEncoding.EncodeToString(ed25519.Sign(key, stateMessage(body)))
	data := append(body[:len(body)-1], sigIntro+sig+"\"}\n"...)
	return replace(fsys, folder, StateFile, folder+"/.state.json.tmp", data)
}

// replace replaces a file durably.
func replace(fsys journal.FS, dir, name, tmp string, data []byte) error {
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Open(tmp, journal.Create)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	return err
}

// readSnapshot returns the snapshot, nil without one. With a key it verifies the
// signature; what cannot be used is a [*SealError], which costs no more than a slow start.
func readSnapshot(fsys journal.FS, key ed25519.PublicKey) (*snapshot, error) {
	data, err := readFile(fsys, StateFile, maxState+1024)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a missing file is not an error
	}
	if err != nil {
		return nil, err
	}
	bad := func(problem string) error {
		return &SealError{File: StateFile, Problem: problem, Remedy: "remove it: the next start reads the whole log and writes another"}
	}
	at := bytes.LastIndex(data, []byte(sigIntro))
	if at < 0 {
		return nil, bad("the snapshot of the log is damaged")
	}
	text, whole := bytes.CutSuffix(data[at+len(sigIntro):], []byte("\"}\n"))
	sig, err := base64.StdEncoding.DecodeString(string(text))
	if !whole || err != nil {
		return nil, bad("the snapshot of the log is damaged")
	}
	body := append(data[:at:at], '}')
	if key != nil && !ed25519.Verify(key, stateMessage(body), sig) {
		return nil, bad("the snapshot of the log was changed, or belongs to another key")
	}
	s := new(snapshot)
	if err := json.Unmarshal(body, s); err != nil {
		return nil, bad("the snapshot of the log is damaged")
	}
	if n := len(s.Segments); s.Format != stateFormat || n == 0 || s.Segments[n-1].Last != s.Entry || s.Segments[n-1].Sum != s.Sum {
		return nil, bad(fmt.Sprintf("the snapshot of the log has format %d, and this yaya reads format %d", s.Format, stateFormat))
	}
	return s, nil
}

// readFile returns a file of at most that many bytes.
func readFile(fsys journal.FS, name string, most int64) (data []byte, err error) {
	f, err := fsys.Open(name, journal.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data = make([]byte, min(size, most))
	if n, err := f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if n < len(data) {
		data = data[:n]
	}
	return data, nil
}

// restore gives the projections their state. It reports whether there is one for each
// of them; if not, it has changed none.
func (s *snapshot) restore(to []control.Projection) (bool, error) {
	for _, p := range to {
		if sp, ok := p.(control.Stateful); !ok || s.State[sp.Part()] == nil {
			return false, nil
		}
	}
	for _, p := range to {
		sp, _ := p.(control.Stateful)
		if err := sp.Restore(s.State[sp.Part()]); err != nil {
			return false, &SealError{File: StateFile, Problem: fmt.Sprintf("the snapshot of the log cannot be applied: %s: %v", sp.Part(), err), Remedy: "remove it: the next start reads the whole log and writes another"}
		}
	}
	return true, nil
}

// save fills in the state of the projections. It reports whether all of them have one.
func (s *snapshot) save(from []control.Projection) (bool, error) {
	s.State = map[string]json.RawMessage{}
	for _, p := range from {
		sp, ok := p.(control.Stateful)
		if !ok {
			return false, nil
		}
		state, err := sp.Save()
		if err != nil {
			return false, fmt.Errorf("%s: %w", sp.Part(), err)
		}
		s.State[sp.Part()] = state
	}
	return true, nil
}
