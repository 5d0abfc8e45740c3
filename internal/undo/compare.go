package undo

import (
	"errors"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// compare adds to a step the files that have changed.
func (g *group) compare(at *kept, w *workspace.Workspace, now picture, st *step) {
	respelled := map[string]bool{} // paths of files that are found under their earlier paths, too
	for _, p := range slices.Sorted(maps.Keys(g.before)) {
		before, after := g.before[p], now.files[p]
		if after == nil { // gone, named, or left out by a .gitignore that is new
			var err error
			after, err = at.keep(w, p)
			other := ""
			if info, ierr := w.Root().Lstat(p); ierr == nil && err == nil { // and not through a link
				other = now.spelled(p, info)
				respelled[other] = true
			}
			switch {
			case before == nil && other != "":
				st.Without = append(st.Without, p)
				continue
			case err == nil, errors.Is(err, workspace.ErrShared) && after != nil && !before.equal(after):
			case before == nil || before.SHA == "":
				st.Without = append(st.Without, p)
				continue
			case errors.Is(err, workspace.ErrGit): // its folder is a repository's own now, which nobody edits
				st.Without = append(st.Without, p)
				continue
			case notRegular(err) && g.replaced(w, p, now, st): // by a folder, say
			case !notRegular(err): // it cannot be read
				after = &content{}
			default:
				st.Without = append(st.Without, p)
				continue
			}
		}
		g.record(w, p, before, after, st)
	}
	for _, p := range slices.Sorted(maps.Keys(now.files)) {
		if _, known := g.before[p]; known {
			continue
		}
		switch was, large := g.first.large[p]; {
		case large && was != now.at[p]:
			st.Without = append(st.Without, p)
		case large || g.first.there(p): // a file that was there, and is not known, is not a new one
		case respelled[p]: // to remove it would be to remove the file of the other path
			st.Without = append(st.Without, p)
		default:
			g.record(w, p, nil, now.files[p], st)
		}
	}
}

// record adds to a step the change of a file.
func (g *group) record(w *workspace.Workspace, p string, before, after *content, st *step) {
	added := after != nil && (before == nil || after.SHA == "" || after.SHA != before.SHA) // content
	switch {
	case before != nil && before.SHA == "", before == nil && after != nil && after.SHA == "":
		st.Without = append(st.Without, p)
	case added && g.moved(w, p) && before == nil:
		st.Without = append(st.Without, p)
	case added && g.moved(w, p):
		st.Files = append(st.Files, file{p, before, nil}) // undo goes on when it is somewhere else
	case after != nil && after.SHA == "":
		st.Files = append(st.Files, file{p, before, unkept(w, p)})
	case !before.equal(after):
		st.Files = append(st.Files, file{p, before, after})
	}
}

// uncovered adds to a step the changes of files that are not covered, and are known: it names them. Where the
// earlier steps have left such a file, a covered one before them, the change is one of a chain.
func (g *group) uncovered(at *kept, w *workspace.Workspace, now picture, st *step) error {
	for p, was := range g.first.odd {
		if is, there := now.odd[p]; !there || is != was {
			st.Without = append(st.Without, p+"/")
		}
	}
	for p := range now.odd {
		if _, known := g.first.odd[p]; !known && !g.first.there(p) {
			st.Without = append(st.Without, p+"/")
		}
	}
	changed := map[string]file{}
	for p, is := range now.large {
		was, large := g.first.large[p]
		if g.before[p] != nil || was == is || !large && g.first.there(p) {
			continue
		}
		st.Without = append(st.Without, p)
		if !large && !g.moved(w, p) {
			changed[p] = file{p, nil, &content{Mode: is.Mode, Seen: is}}
		}
	}
	for _, known := range []map[string]seen{g.first.large, g.first.unread} {
		for p, was := range known {
			after := now.files[p]
			if after == nil {
				after = unkept(w, p)
			}
			before := &content{Mode: was.Mode, Seen: was}
			if before.equal(after) {
				continue
			}
			if g.moved(w, p) {
				after = nil // undo goes on when it is somewhere else
			}
			changed[p] = file{p, before, after}
			if _, large := g.first.large[p]; large {
				st.Without = append(st.Without, p)
			}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	steps, err := at.steps()
	if err != nil {
		return err
	}
	left := map[string]*content{}
	for _, s := range steps {
		for _, f := range slices.Concat(s.Files, s.Unkept) {
			left[f.Path] = f.After
		}
	}
	for _, p := range slices.Sorted(maps.Keys(changed)) {
		was, chained := left[p]
		if f := changed[p]; chained && f.Before.equal(was) {
			st.Unkept = append(st.Unkept, f)
			st.Without = append(st.Without, p)
		}
	}
	return nil
}

// passOn returns the earlier steps as they are when this one is undone: as it does not bring back content that
// is not kept, the step that has left that has now left what this one leaves.
func (st *step) passOn(earlier []step) []step {
	for _, f := range st.Unkept {
		for i := len(earlier) - 1; i >= 0; i-- {
			at := func(e file) bool { return e.Path == f.Path }
			of := earlier[i].Files
			n := slices.IndexFunc(of, at)
			if n < 0 {
				of = earlier[i].Unkept
				n = slices.IndexFunc(of, at)
			}
			if n < 0 {
				continue
			}
			if of[n].After.equal(f.Before) {
				of[n].After = f.After
			}
			break
		}
	}
	return earlier
}

// tell makes the names of files that are not covered text, and bounds them.
func (st *step) tell() {
	for i, p := range st.Without {
		if !utf8.ValidString(p) {
			st.Without[i] = workspace.Shown(p)
		}
	}
	slices.Sort(st.Without)
	st.Without = slices.Compact(st.Without)
	if more := len(st.Without) - maxTold; more > 0 {
		st.Without, st.More = st.Without[:maxTold], more
	}
}

// unkept returns the state of a file whose content was covered and no longer is: it has become too large,
// say.
func unkept(w *workspace.Workspace, p string) *content {
	info, err := w.Root().Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	is := identify(info)
	return &content{Mode: is.Mode, Seen: is}
}

// moved reports whether a file was there before the step, and not covered: the step has moved it to this
// path, from an ignored folder say, and its content is nowhere else. Undo must not remove it.
func (g *group) moved(w *workspace.Workspace, p string) bool {
	info, err := w.Root().Lstat(p)
	if !g.whole || err != nil || !info.Mode().IsRegular() {
		return false
	}
	id, identified := hostfile.Described(info)
	_, large := g.first.large[p]
	covered := g.before[p] != nil || large
	switch {
	case identified && (g.first.ids[id] != "" || g.first.rest[id] == p): // content of the step, or where it was
		return false
	case !identified && covered: // when it was made says nothing, it may be the same file
		return g.older(info.ModTime())
	}
	// Other times can be set, and change with the content.
	if made, known := born(w.Root(), p, info); known {
		return g.older(made) || !made.After(g.began) && g.first.rest[id] != ""
	}
	return g.first.rest[id] != "" || g.older(info.ModTime()) // another file may have had its number
}

// movedOther is moved for a link, a pipe or a device, none of which is covered. changed is the time that one can
// set, too.
func (g *group) movedOther(w *workspace.Workspace, p string, changed time.Time) bool {
	if info, err := w.Root().Lstat(p); err == nil {
		if made, known := born(w.Root(), p, info); known {
			return g.older(made)
		}
	}
	return g.older(changed)
}

// older reports whether a time of a file is before the step.
func (g *group) older(at time.Time) bool {
	if at.Nanosecond() == 0 {
		return at.Add(coarse).Before(g.began)
	}
	return at.Before(g.began)
}
