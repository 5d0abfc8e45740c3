package tool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Bounds of stored artifacts.
const (
	MaxArtifact     = 16 << 20  // bytes of one artifact
	MaxSessionStore = 256 << 20 // bytes of all artifacts of a session
	maxArtifactPage = 48 << 10  // bytes that read_artifact returns at once
)

// ErrNoArtifact reports that a session has no artifact with that id.
var ErrNoArtifact = errors.New("artifact not found in this session")

// Store keeps artifacts under <root>/<session>/artifacts/<turn>/, or directly in
// artifacts/ for calls outside turns. All access goes through an [os.Root], so no
// id escapes it.
type Store struct {
	// Secrets are concealed in artifacts. Set before use; optional.
	Secrets *masked.Secrets
	// Mark ends the ids of artifacts: "@" and the name of this node of a cluster. Set before
	// use; optional.
	Mark string
	// Saved is called with the name of each artifact below the root. Set before use; optional.
	Saved func(session, name string)

	root *os.Root
	mu   sync.Mutex
	used map[string]int64
}

// NewStore keeps artifacts below root, which the caller closes.
func NewStore(root *os.Root) *Store { return &Store{root: root, used: map[string]int64{}} }

var (
	artifactID = lazyregexp.New(`^art_[A-Z2-7]{26}(@[a-z0-9-]{1,63})?$`)
	turnID     = lazyregexp.New(`^turn_[A-Za-z0-9_-]{1,64}$`)
)

// dir returns the folder of a session's artifacts.
func dir(session string) string {
	return path.Join(event.Folder(session), "artifacts")
}

// Put stores the first MaxArtifact bytes of data for a call.
func (s *Store) Put(call Call, mimeType string, data []byte) (Artifact, error) {
	data = s.Secrets.Concealed(data, mimeType == "application/json")
	a := Artifact{ID: "art_" + rand.Text() + s.Mark, MimeType: mimeType, Full: int64(len(data))}
	data = data[:min(len(data), MaxArtifact)]
	a.Size = int64(len(data))
	s.mu.Lock()
	defer s.mu.Unlock()
	d := dir(call.SessionID)
	used, known := s.used[d]
	if !known {
		used = s.measure(d)
	}
	if used+a.Size > MaxSessionStore {
		return Artifact{}, fmt.Errorf("the session's %d MiB for artifacts are full", MaxSessionStore>>20)
	}
	in := d
	if turnID().MatchString(call.Turn) {
		in = path.Join(d, call.Turn)
	}
	if err := s.root.MkdirAll(in, 0o700); err != nil {
		return Artifact{}, fmt.Errorf("store artifact of call %s: %w", call.ID, err)
	}
	if err := s.root.WriteFile(path.Join(in, a.ID), data, 0o600); err != nil {
		_ = s.root.Remove(path.Join(in, a.ID))
		return Artifact{}, fmt.Errorf("store artifact of call %s: %w", call.ID, err)
	}
	s.used[d] = used + a.Size
	if s.Saved != nil {
		s.Saved(call.SessionID, path.Join(in, a.ID))
	}
	return a, nil
}

// Scratch opens an empty file that nobody else sees and that disappears when it is
// closed.
func (s *Store) Scratch() (*os.File, error) {
	name := "scratch_" + rand.Text()
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open scratch file: %w", err)
	}
	if err := s.root.Remove(name); err != nil {
		return nil, errors.Join(fmt.Errorf("open scratch file: %w", err), f.Close())
	}
	return f, nil
}

// Forget forgets a session whose artifacts were removed.
func (s *Store) Forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, dir(session))
}

func (s *Store) measure(d string) int64 {
	var n int64
	entries, err := fs.ReadDir(s.root.FS(), d)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.IsDir() {
			n += s.measure(path.Join(d, e.Name()))
		} else if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// open finds an artifact, whichever turn it belongs to.
func (s *Store) open(session, id string) (*os.File, error) {
	d := dir(session)
	f, err := s.root.Open(path.Join(d, id))
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	entries, derr := fs.ReadDir(s.root.FS(), d)
	if derr != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if f, err := s.root.Open(path.Join(d, e.Name(), id)); !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, err
}

// ReadAt reads up to len(p) bytes of an artifact and also returns its size.
func (s *Store) ReadAt(session, id string, p []byte, off int64) (n int, size int64, err error) {
	if !artifactID().MatchString(id) || off < 0 {
		return 0, 0, ErrNoArtifact
	}
	f, err := s.open(session, id)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, ErrNoArtifact
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read artifact: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("read artifact: %w", err)
	}
	n, err = f.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, info.Size(), err
}

type readArtifactArgs struct {
	ID     string `json:"id" jsonschema:"the artifact's id, as the truncation mark names it"`
	Offset int64  `json:"offset,omitempty" jsonschema:"byte to start from, 0 by default"`
	Limit  int    `json:"limit,omitempty" jsonschema:"bytes to return, 48 KiB at most and by default"`
}

// NewReadArtifact returns the tool that pages through stored artifacts of the
// calling session.
func NewReadArtifact(s *Store) (Tool, error) {
	return New(Definition{
		Name: "read_artifact", Title: "Read artifact", Kind: KindRead,
		Description: "Reads a part of a stored tool result that was too long to show whole.",
	}, func(_ context.Context, call Call, a readArtifactArgs) (Result, error) {
		if a.Limit <= 0 || a.Limit > maxArtifactPage {
			a.Limit = maxArtifactPage
		}
		buf := make([]byte, a.Limit)
		n, size, err := s.ReadAt(call.SessionID, a.ID, buf, a.Offset)
		if errors.Is(err, ErrNoArtifact) {
			return Fail(ErrTool, "%v", err), nil
		}
		if err != nil {
			return Result{}, err
		}
		page := cut.Whole(buf[:n])
		if len(page) == 0 {
			page = buf[:n]
		}
		next := a.Offset + int64(len(page))
		text := strings.ToValidUTF8(string(page), "\ufffd")
		if next < size {
			text += fmt.Sprintf("\n\n[bytes %d to %d of %d; continue with offset %d]", a.Offset, next, size, next)
		}
		return OK(fmt.Sprintf("bytes %d to %d of %d", a.Offset, next, size), Text(text)), nil
	})
}
