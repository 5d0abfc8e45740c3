package manage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Reload takes over what has changed in the files of servers, yaya's own unless others
// are named, after record has agreed. Only servers that come to something else than
// what runs are started again. Every file is taken over, or none: the error, a
// [FileError], says which has a mistake.
func (s *Manager) Reload(ctx context.Context, named []string, record func([]Change) error) ([]Change, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	l, err := s.look(named)
	if err != nil {
		return nil, err
	}
	if !s.cfg.Bridge.Loaded() { // it is switched off: nothing runs
		return nil, nil
	}
	d := s.compare(l)
	if len(d.changes) == 0 {
		return nil, nil
	}
	if err := record(d.changes); err != nil {
		return nil, err
	}
	for _, w := range l.Warnings {
		s.cfg.Log.Warn().Msg(w)
	}
	s.mu.Lock()
	for _, name := range d.stop {
		delete(s.list, name)
	}
	for _, x := range l.Servers {
		s.list[x.Name] = x
	}
	s.bad = append(slices.DeleteFunc(s.bad, func(x servers.Invalid) bool { return !s.brings(x) }), l.Invalid...)
	if !s.ends && s.cfg.Own { // a name that was the user's may be the folder's now, or the other way
		s.work.Go(func() {
			if here, err := folder.Resolve(s.cfg.Here); err == nil {
				s.reconsider(here)
			}
		})
	}
	s.mu.Unlock()
	var work sync.WaitGroup
	for _, name := range d.stop {
		work.Go(func() { s.cfg.Bridge.Remove(name) })
	}
	for _, x := range d.start {
		work.Go(func() { s.run(ctx, x) })
	}
	work.Wait()
	s.changed(true)
	return d.changes, nil
}

// look reads the files of servers, and refuses what is worse than it was.
func (s *Manager) look(named []string) (Loaded, error) {
	files, own := named, len(named) == 0
	if own {
		files = []string{s.cfg.File}
	}
	var l Loaded
	for _, file := range files {
		before := len(l.Invalid)
		data, err := l.file(file, own)
		if err != nil {
			return l, &FileError{file, err}
		}
		if data != nil && len(bytes.TrimSpace(data)) == 0 && s.has(file) {
			return l, &FileError{file, EmptyFile(file, "{}", "servers")}
		}
		for _, bad := range l.Invalid[before:] {
			if s.knownBad(bad) {
				continue
			}
			place := file
			if line := servers.Line(file, data, servers.Detect(file, data), bad.Name); line > 0 {
				place = fmt.Sprintf("%s:%d", file, line)
			}
			return l, &FileError{file, fmt.Errorf("%s: server %q: %w", place, bad.Name, bad.Err)}
		}
	}
	l.distinct()
	return l, nil
}

// distinct puts servers whose name another has already among those that cannot be used.
func (l *Loaded) distinct() {
	taken := map[string]bool{}
	var out []servers.Server
	for _, x := range l.Servers {
		if taken[x.Name] {
			l.Invalid = append(l.Invalid, servers.Invalid{Name: x.Name, File: x.File, Err: errors.New("another server of that name is configured; rename one of them")})
			continue
		}
		taken[x.Name] = true
		out = append(out, x)
	}
	l.Servers = out
}

// has reports whether a file has configured servers so far.
func (s *Manager) has(file string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.list {
		if x.File == file && !x.Project {
			return true
		}
	}
	return false
}

// knownBad reports whether a server could not be used before, for the same reason.
func (s *Manager) knownBad(bad servers.Invalid) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.bad, func(o servers.Invalid) bool { return o.Name == bad.Name && o.Err.Error() == bad.Err.Error() })
}

// difference is the difference between the servers in files and those that run.
type difference struct {
	changes []Change
	stop    []string
	start   []servers.Server
}

// compare finds what has changed, by name; changing is held.
func (s *Manager) compare(l Loaded) (d difference) {
	runs := map[string]bool{} // asked before mu is held: the bridge reads env files and secrets for it
	have := s.configured()
	for _, x := range l.Servers {
		if slices.ContainsFunc(have, func(y servers.Server) bool { return x.Name == y.Name && !y.Project }) {
			runs[x.Name] = s.cfg.Bridge.Runs(x)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	note := func(file, name, change, note string) {
		d.changes = append(d.changes, Change{File: file, Name: name, Change: change, Note: note})
	}
	wasBad := func(name string) bool {
		return slices.ContainsFunc(s.bad, func(i servers.Invalid) bool { return i.Name == name })
	}
	there := map[string]bool{}
	for _, x := range l.Servers {
		there[x.Name] = true
		was, known := s.list[x.Name]
		known = known && !was.Project
		if known && runs[x.Name] {
			s.list[x.Name] = x // it may be written in other words
			continue
		}
		change, off := "added", ""
		if known || wasBad(x.Name) {
			change = "changed"
		}
		if x.Disabled {
			off = "switched off"
		} else if known && was.Disabled {
			off = "started"
		}
		note(x.File, x.Name, change, off)
		d.start = append(d.start, x)
	}
	for name, x := range s.list {
		if !x.Project && !there[name] {
			note(x.File, name, "removed", "")
			d.stop = append(d.stop, name)
		}
	}
	for _, x := range s.bad {
		stays := func(i servers.Invalid) bool { return i.Name == x.Name }
		if !there[x.Name] && !slices.ContainsFunc(l.Invalid, stays) && !slices.Contains(d.stop, x.Name) && !s.brings(x) {
			note(x.File, x.Name, "removed", "")
			d.stop = append(d.stop, x.Name)
		}
	}
	slices.SortFunc(d.changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// brings reports whether a server that cannot be used is a folder's, not the user's.
func (s *Manager) brings(x servers.Invalid) bool {
	return s.cfg.Own && x.File != s.cfg.File
}
