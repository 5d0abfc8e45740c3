package datadir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Options say how the files of a data directory are looked at.
type Options struct {
	// Secrets opens the sealed secrets; nil checks only the form of their file.
	Secrets func(ctx context.Context) error
}

// dir is a data directory during a check.
type dir struct {
	root *os.Root
	o    Options
	now  time.Time
	pins map[string]error // of damaged approvals, once they were looked at
}

// Aside is the folder of damaged files, below the data directory.
const Aside = "damaged"

// Verify checks every file that yaya keeps, but the control log with its keys, and
// returns how many those are.
func Verify(ctx context.Context, root *os.Root, o Options) (files int, findings []session.Finding, err error) {
	d := &dir{root: root, o: o}
	fsys := journal.Root(root)
	files, findings, err = session.VerifyKnown(fsys, d.known())
	if err != nil {
		return files, findings, err
	}
	missing, err := session.Missing(fsys)
	if findings = append(findings, missing...); err != nil {
		return files, findings, err
	}
	err = d.walk(func(name string, k *kind) error {
		files++
		if err := d.check(ctx, name, k); err != nil {
			findings = append(findings, session.FindingOf(name, err))
		}
		return ctx.Err()
	}, func(name string, err error) { findings = append(findings, session.FindingOf(name, err)) })
	return files, findings, err
}

// check returns what is wrong with a file, or in the place of one.
func (d *dir) check(ctx context.Context, name string, k *kind) error {
	st, err := d.root.Lstat(name)
	if err == nil && !st.Mode().IsRegular() && (name != memoryFile || st.IsDir()) { // SQLite follows links
		err = notRegular()
	}
	if errors.Is(err, fs.ErrNotExist) { // another process has removed it
		return nil
	}
	if err != nil {
		return err
	}
	return k.check(ctx, d, name)
}

// walk visits the files of all kinds, and what lies in their places. unlisted gets the
// folders that cannot be read.
func (d *dir) walk(visit func(name string, k *kind) error, unlisted func(name string, err error)) error {
	return fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != ".": // another process has removed it
			return nil
		case err != nil && name == ".":
			return fmt.Errorf("data directory: %w", err)
		case err != nil:
			unlisted(name, err)
			return nil
		case e.IsDir():
			if k := kindOf(name); k != nil {
				return cmp.Or(visit(name, k), fs.SkipDir)
			}
			if name == Aside || name == "tapes" || name == "control" {
				return fs.SkipDir
			}
			return nil
		}
		if k := kindOf(name); k != nil {
			return visit(name, k)
		}
		return nil
	})
}

// known reads what is known of sessions beside their tapes, by the names of the tapes.
func (d *dir) known() map[string]session.Known {
	out, err := session.KnownTapes(journal.Root(d.root))
	if err != nil {
		out = map[string]session.Known{} // it is a cache, and the next start makes it again
	}
	folders, err := fs.ReadDir(d.root.FS(), "sessions")
	if err != nil {
		return out // there are none
	}
	for _, f := range folders {
		if !f.IsDir() || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		data, err := d.read(path.Join("sessions", f.Name(), path.Base(sessionFiles)))
		if err != nil {
			continue // its walk says so
		}
		var r struct {
			ID        string         `json:"id"`
			Workspace string         `json:"workspace_path"`
			Counted   session.Cursor `json:"counted"`
		}
		if json.Unmarshal(data, &r) != nil || r.ID == "" || r.Workspace == "" {
			continue
		}
		k := out[session.TapeName(r.Workspace, r.ID)]
		k.ID, k.Workspace, k.Counted = r.ID, r.Workspace, r.Counted
		out[session.TapeName(r.Workspace, r.ID)] = k
	}
	return out
}

// move moves a file, in folders that it makes, durably.
func (d *dir) move(name, to string) error {
	if _, err := d.root.Lstat(name); err != nil {
		return err
	}
	return journal.SetAside(journal.Root(d.root), name, to)
}
