package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/plugins/installed"
)

// Limits of packages that were shown and not installed yet.
const (
	maxProposals = 4
	proposalLife = 10 * time.Minute
)

// proposals are packages that were fetched and shown, so that they need not be fetched a second
// time when the user has agreed. They end by themselves after [proposalLife].
type proposals struct {
	failed func(error) // is told what could not be removed when the time was over

	mu     sync.Mutex
	held   []proposal // the oldest first
	closed bool
	timer  *time.Timer // of the oldest; nil without one
	ending sync.WaitGroup
}

type proposal struct {
	p     *installed.Package
	until time.Time
}

// hold keeps a package, in the place of the oldest one if there are too many.
func (h *proposals) hold(p *installed.Package) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.Join(errors.New("yaya stops"), p.Close())
	}
	h.held = append(h.held, proposal{p, time.Now().Add(proposalLife)})
	defer h.arm()
	return h.drop(func(i int, q proposal) bool { return len(h.held)-i > maxProposals || q.over() })
}

func (q proposal) over() bool { return !time.Now().Before(q.until) }

// take returns a package that is held no longer, nil without one.
func (h *proposals) take(source, digest string) (found *installed.Package) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = slices.DeleteFunc(h.held, func(q proposal) bool {
		if found != nil || q.p.Source != source || q.p.Digest != digest || q.over() {
			return false
		}
		found = q.p
		return true
	})
	h.arm()
	return found
}

// arm sets the timer to the end of the oldest package; mu is held.
func (h *proposals) arm() {
	h.disarm()
	if len(h.held) == 0 {
		return
	}
	h.ending.Add(1)
	h.timer = time.AfterFunc(time.Until(h.held[0].until), func() {
		defer h.ending.Done()
		if err := h.expire(); err != nil {
			h.failed(err)
		}
	})
}

// disarm stops the timer; mu is held.
func (h *proposals) disarm() {
	if h.timer != nil && h.timer.Stop() {
		h.ending.Done()
	}
	h.timer = nil
}

// expire closes the packages whose time is over.
func (h *proposals) expire() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.arm()
	return h.drop(func(_ int, q proposal) bool { return q.over() })
}

// drop closes those that end says; mu is held.
func (h *proposals) drop(end func(i int, q proposal) bool) error {
	var errs []error
	var left []proposal
	for i, q := range h.held {
		if end(i, q) {
			errs = append(errs, q.p.Close())
		} else {
			left = append(left, q)
		}
	}
	h.held = left
	return errors.Join(errs...)
}

// close closes all packages, and waits until its timer has ended.
func (h *proposals) close() error {
	h.mu.Lock()
	h.closed = true
	err := h.drop(func(int, proposal) bool { return true })
	h.disarm()
	h.mu.Unlock()
	h.ending.Wait()
	return err
}

// notRemoved reports temporary files that could not be removed.
func (t *thirdParty) notRemoved(err error) {
	if err != nil {
		t.c.st.at.log.Warn().Err(err).Msg("temporary files of packages could not be removed")
	}
}

// staleAfter is the age of temporary folders that no yaya uses: a package is fetched,
// shown and built within an hour.
const staleAfter = 24 * time.Hour

// stalePattern matches the names that [os.MkdirTemp] makes for packages.
var stalePattern = lazyregexp.New(`^yaya-plugin-[0-9]+$`)

// removeStale removes the temporary folders of packages that yayas which were killed have left.
func removeStale(temporary string, now time.Time) error {
	root, err := os.OpenRoot(temporary)
	if err != nil {
		return fmt.Errorf("temporary folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("temporary folder: %w", err)
	}
	var errs []error
	for _, d := range entries {
		if !d.IsDir() || !stalePattern().MatchString(d.Name()) {
			continue
		}
		info, err := root.Lstat(d.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // its owner has removed it
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if owner, known := hostfile.Owner(info); info.IsDir() && (!known || owner == os.Geteuid()) && now.Sub(info.ModTime()) > staleAfter {
			errs = append(errs, root.RemoveAll(d.Name()))
		}
	}
	return errors.Join(errs...)
}
