// Package undo keeps what calls of agents change in files of a workspace, so that a person can
// undo it: every byte and the permissions of regular files, and the permissions of folders.
//
// A change begins before a call and is done after it: the difference is one step of its session.
// Calls that overlap are one step. Changes that others make to the same files in that time count
// as the call's.
//
// A change includes the folder, link or pipe that a call puts in the place of a covered file, or of a
// folder of such files. Undo removes it only if all of it is the call's, and as the call left it.
//
// A covered file that gets a secret, becomes too large or can no longer be read is restored, too, unless
// that content was elsewhere before.
//
// A folder that a call removes is back, and one that it makes goes if nothing else is in it.
//
// Otherwise not covered are links, pipes and devices. Nor are files that .gitignore leaves out, Git's own,
// the temporary ones of edits, files with several names, a secret of yaya's, a name that is not UTF-8 or
// more than 4 MiB, and of a workspace with more than 20,000 files, or 128 MiB, the rest. A step names the
// files that changed and are not covered for their size, names or a secret.
package undo

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// Bounds of what is kept.
const (
	maxFile  = 4 << 20   // bytes of a file
	maxFiles = 20_000    // of a workspace
	maxBytes = 128 << 20 // of a workspace
	maxSteps = 100       // of a session
	maxKept  = 512 << 20 // bytes that the steps of a session need
	maxNamed = 20        // files in an error
	maxTold  = 100       // of a step, that are not covered
)

var (
	// ErrNothing is returned by [Store.Undo] when a session has no step that can be undone.
	ErrNothing = errors.New("there is nothing to undo")
	// ErrChanged is returned by [Store.Undo] when a file is not as the step left it.
	ErrChanged = errors.New("files have changed since, and nothing was undone")
	// ErrInTheWay is returned by [Store.Undo] when something that the step does not cover is in the place
	// of a file that it would bring back.
	ErrInTheWay = errors.New("something that the change does not cover is in the place of its files, and nothing was undone")
	// ErrOtherFolder is returned by [Store.Undo] when the path of the step's folder leads to another one.
	ErrOtherFolder = errors.New("another folder is in the place of the one that was changed, and nothing was undone")
	// ErrContent is returned by [Store.Undo] when the content to go back to is not what was kept.
	ErrContent = errors.New("the content to go back to is lost or damaged")
	// ErrGone is returned by [Store.Undo] when no folder is where that of the step was.
	ErrGone = errors.New("the folder that was changed is gone, and nothing was undone")
	// ErrUntrusted is for the function that opens the folder for [Store.Undo]: its user does not trust it.
	ErrUntrusted = errors.New("the folder of the change is not trusted, and nothing was undone")
)

// content is the state of a regular file; nil stands for a missing file.
type content struct {
	SHA  string      `json:"sha256,omitempty"` // "" if the content is not kept
	Mode fs.FileMode `json:"mode"`
	Seen seen        `json:"seen,omitzero"` // what identifies content that is not kept, after a step
}

func (c *content) equal(d *content) bool {
	return (c == nil) == (d == nil) && (c == nil || *c == *d)
}

// file is a file that a step changed.
type file struct {
	Path   string   `json:"path"`
	Before *content `json:"before,omitempty"`
	After  *content `json:"after,omitempty"`
}

// step holds the changes of calls.
type step struct {
	ID      string    `json:"id,omitempty"`
	Dir     string    `json:"dir"`
	At      place     `json:"at,omitzero"`
	Tools   []string  `json:"tools"`
	Time    time.Time `json:"time"`
	Files   []file    `json:"files"`
	Others  []other   `json:"others,omitempty"`
	Folders []folder  `json:"folders,omitempty"` // parents first
	Without []string  `json:"without,omitempty"` // changed files that are not covered
	More    int       `json:"more,omitempty"`    // of them that have no place in Without
	Unkept  []file    `json:"unkept,omitempty"`  // changes after those of earlier steps, of content that is not kept
	Lost    bool      `json:"lost,omitempty"`    // its changes could not be recorded
	Undoing bool      `json:"undoing,omitempty"` // an undo has begun to change files
	// Opened are the folders that this undo has opened, with their permissions before.
	Opened map[string]fs.FileMode `json:"opened,omitempty"`
}

// Undone is a step that was undone.
type Undone struct {
	Folder  string    `json:"folder"`
	Tools   []string  `json:"tools"`                              // that made the changes
	Time    time.Time `json:"time"`                               // of the changes
	Files   []string  `json:"files"`                              // that are as before
	Without []string  `json:"files_not_covered" nullable:"false"` // that were changed, too, and are left as they are
	More    int       `json:"more_not_covered"`                   // of them that files_not_covered does not name
	// Remaining are folders, or others, that the step has changed, and that are not as before.
	Remaining []Remaining `json:"not_as_before" nullable:"false"`
	Left      int         `json:"left"` // steps that can still be undone
}

// Store keeps the steps of all sessions in a folder. It is safe for concurrent use.
type Store struct {
	root   *os.Root
	secret func(data []byte) bool
	most   int64 // maxKept

	mu       sync.Mutex
	sessions map[string]*calls
}

// calls are those of a session; they do not wait for other sessions, whose workspaces may be large.
type calls struct {
	mu     sync.Mutex
	open   *group // nil while none runs
	looked bool   // at a whole workspace, by this process
	gone   bool   // the session is forgotten
}

// of returns the calls of a session, locked.
func (s *Store) of(session string) *calls {
	for {
		s.mu.Lock()
		c := s.sessions[session]
		if c == nil {
			c = &calls{}
			s.sessions[session] = c
		}
		s.mu.Unlock()
		if c.mu.Lock(); !c.gone {
			return c
		}
		c.mu.Unlock()
	}
}

// New returns a store that keeps its files in root, which stays the caller's. It keeps no content
// that secret says has a secret.
func New(root *os.Root, secret func(data []byte) bool) *Store {
	return &Store{root: root, secret: secret, most: maxKept, sessions: map[string]*calls{}}
}

// group is a step whose calls still run.
type group struct {
	id     string // of its step
	calls  int
	dir    string
	at     place
	whole  bool // the whole workspace was seen, as first
	first  picture
	before map[string]*content
	tools  []string
	began  time.Time       // nothing that its calls have made is older
	noted  map[string]bool // paths whose others are in the step
	named  map[string]bool // paths that calls have named
	missed map[string]bool // folders above those that were not there
	looks  int             // at the whole workspace
}

// Change is a call that may be changing files.
type Change struct {
	s       *Store
	of      *calls
	session string
	w       *workspace.Workspace
}

// Begin notes the state of files before a call of a tool: of the named ones, or with none named of
// the whole workspace. Done has to be called whenever Begin succeeds.
func (s *Store) Begin(ctx context.Context, session, tool string, w *workspace.Workspace, paths ...string) (*Change, error) {
	of := s.of(session)
	defer of.mu.Unlock()
	at, err := s.folder(session)
	if err != nil {
		return nil, err
	}
	defer at.close()
	g := of.open
	if g == nil {
		if err := at.recover(ctx, func(dir string) (*workspace.Workspace, error) {
			return w.Lent(dir, func() error { return nil }), nil // another folder is not the step's
		}); err != nil {
			return nil, err
		}
		steps, err := at.steps()
		if err == nil {
			err = at.tidy(w, steps)
		}
		if err != nil {
			return nil, err
		}
	}
	if g != nil && g.dir != w.Dir() {
		return nil, errors.New("a call in another folder is running")
	}
	if g == nil {
		here, err := whereIs(w)
		if err != nil {
			return nil, err
		}
		g = &group{id: rand.Text(), dir: w.Dir(), at: here, before: map[string]*content{}, noted: map[string]bool{}, named: map[string]bool{}, missed: map[string]bool{}}
	}
	if len(paths) == 0 {
		if !of.looked {
			if at.sizes, err = at.blobs(); err != nil {
				return nil, err
			}
		}
		now, err := at.look(ctx, w)
		if err == nil {
			err = at.store(seenFile, now.known)
		}
		if err != nil {
			return nil, err
		}
		of.looked = true
		g.looks++
		for p, c := range now.files {
			if _, known := g.before[p]; !known && !g.whole {
				g.before[p] = c
			}
		}
		if !g.whole {
			g.whole, g.first = true, now
		}
	}
	for _, p := range paths {
		g.missFolders(w, p)
		_, known := g.before[p]
		_, large := g.first.large[p]
		switch {
		case known:
		case g.whole && !large && !g.first.there(p):
			g.before[p] = nil // a call that overlaps has just made it
		default:
			c, err := at.keep(w, p)
			if err != nil {
				return nil, err
			}
			g.before[p] = c
		}
		g.named[p] = true // only now: of others, nothing is known
	}
	if !slices.Contains(g.tools, tool) {
		g.tools = append(g.tools, tool)
	}
	if g.calls == 0 {
		g.began = clock()
	}
	if err := at.hold(g); err != nil {
		return nil, err
	}
	g.calls++
	of.open = g
	return &Change{s, of, session, w}, nil
}

// Done compares the files with their state at Begin, and keeps the difference. Of calls that
// overlap, the last one does it. same reports that no file of the workspace has changed; it is
// false if Done cannot know.
func (c *Change) Done(ctx context.Context) (same bool, err error) {
	of := c.of
	of.mu.Lock()
	defer of.mu.Unlock()
	g := of.open
	if g.calls--; g.calls > 0 || of.gone {
		return false, nil
	}
	of.open = nil
	at, err := c.s.folder(c.session)
	if err != nil {
		return false, err
	}
	defer at.close()
	same, err = g.finish(ctx, at, c.w)
	return same, errors.Join(err, at.end(ctx, pending{ID: g.id, Dir: g.dir, At: g.at, Tools: g.tools}, err))
}

// Missed notes that a call may have changed files although [Store.Begin] has failed: an undo says so before it
// undoes the change before.
func (s *Store) Missed(session, tool string, w *workspace.Workspace) error {
	of := s.of(session)
	defer of.mu.Unlock()
	at, err := s.folder(session)
	if err != nil {
		return err
	}
	defer at.close()
	return at.add(step{Dir: w.Dir(), Tools: []string{tool}, Time: time.Now().UTC(), Lost: true}, nil)
}

// finish keeps the difference of the files to their state before the group.
func (g *group) finish(ctx context.Context, at *kept, w *workspace.Workspace) (same bool, err error) {
	st := step{ID: g.id, Dir: g.dir, At: g.at, Tools: g.tools, Time: time.Now().UTC()}
	now := picture{}
	if g.whole {
		shut := &opened{w, map[string]fs.FileMode{}}
		defer func() {
			at.enter = func(string, fs.FileMode) {}
			err = errors.Join(err, shut.back())
		}()
		at.enter = func(dir string, mode fs.FileMode) {
			if mode&0o500 != 0o500 && !g.first.there(dir) { // the calls have closed it
				shut.open(dir, mode)
			}
		}
		if now, err = at.look(ctx, w); err != nil {
			return false, err
		}
		if err := g.uncovered(at, w, now, &st); err != nil {
			return false, err
		}
	}
	g.compare(at, w, now, &st)
	if g.whole {
		g.compareFolders(w, now, &st)
	}
	g.addMissed(w, &st)
	st.tell()
	if len(st.Files)+len(st.Folders)+len(st.Without) > 0 {
		return false, at.add(st, now.known)
	}
	at.next = now.known
	return g.whole && !g.first.part && !now.part, nil
}

// Undo undoes the last step of a session: its files are as before it, all of them or none. It
// refuses a step of whose files one is neither as the step left it nor as it was before.
func (s *Store) Undo(ctx context.Context, session string, open func(dir string) (*workspace.Workspace, error)) (undone Undone, err error) {
	of := s.of(session)
	defer of.mu.Unlock()
	if of.open != nil {
		return Undone{}, errors.New("a call that may change files is running")
	}
	at, err := s.folder(session)
	if err != nil {
		return Undone{}, err
	}
	defer at.close()
	open = orGone(open)
	if err := at.recover(ctx, open); err != nil {
		return Undone{}, err
	}
	steps, err := at.steps()
	if err != nil {
		return Undone{}, err
	}
	if len(steps) == 0 {
		return Undone{}, ErrNothing
	}
	st := &steps[len(steps)-1]
	if st.Lost {
		out := Undone{Folder: st.Dir, Tools: st.Tools, Time: st.Time, Files: []string{}, Without: []string{}, Remaining: []Remaining{{".", lost}}, Left: len(steps) - 1}
		return out, at.write(steps[:len(steps)-1], nil)
	}
	w, err := open(st.Dir)
	if err != nil {
		return Undone{}, err
	}
	defer func() { _ = w.Close() }()
	if err := errors.Join(st.in(w), at.tidy(w, steps)); err != nil {
		return Undone{}, err
	}
	shut, applied := &opened{w, map[string]fs.FileMode{}}, false
	defer func() {
		if undone.Folder != "" || !st.Undoing {
			return
		}
		serr := shut.back() // nothing was undone
		if serr == nil {
			st.Undoing, st.Opened = applied, nil
			serr = at.store(stepsFile, steps)
		}
		err = errors.Join(err, serr)
	}()
	begins := func() error {
		st.Undoing, st.Opened = true, shut.was
		return at.store(stepsFile, steps)
	}
	if err := openFolders(shut, *st, begins); err != nil {
		return Undone{}, err
	}
	out := Undone{Folder: st.Dir, Tools: st.Tools, Time: st.Time, Files: []string{}, Without: append([]string{}, st.Without...), More: st.More, Remaining: []Remaining{}, Left: len(steps) - 1}
	r := newReversal(w, at, *st)
	for _, f := range st.Files {
		if err := ctx.Err(); err != nil {
			return Undone{}, err
		}
		if err := r.file(f); err != nil {
			return Undone{}, err
		}
		out.Files = append(out.Files, f.Path)
	}
	r.folders()
	if err := begins(); err != nil {
		return Undone{}, err
	}
	applied = true
	if err := r.apply(); errors.Is(err, workspace.ErrLeft) {
		out.Remaining = append(out.Remaining, Remaining{".", err.Error()})
	} else if err != nil {
		return Undone{}, err
	}
	back, rest := bringBack(shut, *st)
	out.Files, out.Remaining = append(out.Files, back...), append(out.Remaining, rest...)
	if err := at.write(st.passOn(steps[:len(steps)-1]), nil); err != nil {
		return out, fmt.Errorf("the files are as before, but yaya could not write that down, and the next undo is this one again: %w", err)
	}
	return out, nil
}

// Forget removes everything of a session.
func (s *Store) Forget(session string) error {
	of := s.of(session)
	defer of.mu.Unlock()
	of.gone = true // calls that still run have nothing to write down
	s.mu.Lock()
	delete(s.sessions, session)
	s.mu.Unlock()
	return s.root.RemoveAll(key(session))
}

func key(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:16])
}

// state returns the state of a file.
func state(w *workspace.Workspace, p string) (*content, error) {
	c, _, err := read(w, p)
	return c, err
}

// notRegular reports whether something else than a regular file is where one was.
func notRegular(err error) bool {
	return errors.Is(err, workspace.ErrIrregular) || errors.Is(err, workspace.ErrLink) || errors.Is(err, workspace.ErrShared)
}

// read returns the state and the content of a file; what is not a regular file, or leads through
// a link, is an error. So is [workspace.ErrShared], which comes with the state.
func read(w *workspace.Workspace, p string) (*content, []byte, error) {
	writable := w.Writable(p)
	if writable != nil && !errors.Is(writable, workspace.ErrShared) {
		return nil, nil, writable
	}
	info, err := w.Root().Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > maxFile {
		return &content{Mode: fileMode(info)}, nil, writable
	}
	data, info, err := w.Read(p)
	if err != nil {
		return nil, nil, err
	}
	return &content{SHA: sum(data), Mode: fileMode(info)}, data, writable
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// blobName is the path of kept content.
func blobName(sha string) string { return path.Join("blobs", sha) }

// same reports whether content is what its name says.
func same(data []byte, sha string) bool { return bytes.Equal([]byte(sum(data)), []byte(sha)) }
