package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// reload takes over what has changed in the files of servers, yaya's own unless others
// are named, after record has agreed. Only servers that come to something else than
// what runs are started again. Every file is taken over, or none: the error, a
// [fileError], says which has a mistake.
func (s *serverAdmin) reload(ctx context.Context, named []string, record func([]admin.FileChange) error) ([]admin.FileChange, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	l, err := s.look(named)
	if err != nil {
		return nil, err
	}
	if !s.a.bridge.Loaded() { // it is switched off: nothing runs
		return nil, nil
	}
	d := s.compare(l)
	if len(d.changes) == 0 {
		return nil, nil
	}
	if err := record(d.changes); err != nil {
		return nil, err
	}
	for _, w := range l.warnings {
		s.a.log.Warn().Msg(w)
	}
	s.mu.Lock()
	for _, name := range d.stop {
		delete(s.list, name)
	}
	for _, x := range l.servers {
		s.list[x.Name] = x
	}
	s.bad = append(slices.DeleteFunc(s.bad, func(x servers.Invalid) bool { return !s.brings(x) }), l.invalid...)
	if !s.ends && s.own { // a name that was the user's may be the folder's now, or the other way
		s.work.Go(func() {
			if here, err := folder.Resolve(s.here); err == nil {
				s.reconsider(here)
			}
		})
	}
	s.mu.Unlock()
	var work sync.WaitGroup
	for _, name := range d.stop {
		work.Go(func() { s.a.bridge.Remove(name) })
	}
	for _, x := range d.start {
		work.Go(func() { s.run(ctx, x) })
	}
	work.Wait()
	s.a.changed(admin.PartServers, admin.PartTools, admin.PartQuarantine)
	return d.changes, nil
}

// look reads the files of servers, and refuses what is worse than it was.
func (s *serverAdmin) look(named []string) (loaded, error) {
	files, own := named, len(named) == 0
	if own {
		files = []string{s.p.servers()}
	}
	var l loaded
	for _, file := range files {
		before := len(l.invalid)
		data, err := l.file(file, own)
		if err != nil {
			return l, &fileError{file, err}
		}
		if data != nil && len(bytes.TrimSpace(data)) == 0 && s.has(file) {
			return l, &fileError{file, errEmpty(file, "{}", "servers")}
		}
		for _, bad := range l.invalid[before:] {
			if s.knownBad(bad) {
				continue
			}
			place := file
			if line := servers.Line(file, data, servers.Detect(file, data), bad.Name); line > 0 {
				place = fmt.Sprintf("%s:%d", file, line)
			}
			return l, &fileError{file, fmt.Errorf("%s: server %q: %w", place, bad.Name, bad.Err)}
		}
	}
	l.distinct()
	return l, nil
}

// distinct puts servers whose name another has already among those that cannot be used.
func (l *loaded) distinct() {
	taken := map[string]bool{}
	var out []servers.Server
	for _, x := range l.servers {
		if taken[x.Name] {
			l.invalid = append(l.invalid, servers.Invalid{Name: x.Name, File: x.File, Err: errors.New("another server of that name is configured; rename one of them")})
			continue
		}
		taken[x.Name] = true
		out = append(out, x)
	}
	l.servers = out
}

// has reports whether a file has configured servers so far.
func (s *serverAdmin) has(file string) bool {
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
func (s *serverAdmin) knownBad(bad servers.Invalid) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.bad, func(o servers.Invalid) bool { return o.Name == bad.Name && o.Err.Error() == bad.Err.Error() })
}

// difference is what files of servers ask for beside what there is.
type difference struct {
	changes []admin.FileChange
	stop    []string
	start   []servers.Server
}

// compare finds what has changed, by name; changing is held.
func (s *serverAdmin) compare(l loaded) (d difference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note := func(file, name, change, note string) {
		d.changes = append(d.changes, admin.FileChange{File: file, Kind: admin.KindServer, Name: name, Change: change, Effect: admin.EffectTaken, Note: note})
	}
	wasBad := func(name string) bool {
		return slices.ContainsFunc(s.bad, func(i servers.Invalid) bool { return i.Name == name })
	}
	there := map[string]bool{}
	for _, x := range l.servers {
		there[x.Name] = true
		was, known := s.list[x.Name]
		known = known && !was.Project
		if known && s.a.bridge.Runs(x) {
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
		if !there[x.Name] && !slices.ContainsFunc(l.invalid, stays) && !slices.Contains(d.stop, x.Name) && !s.brings(x) {
			note(x.File, x.Name, "removed", "")
			d.stop = append(d.stop, x.Name)
		}
	}
	slices.SortFunc(d.changes, func(a, b admin.FileChange) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// brings reports whether a server that cannot be used is a folder's, not the user's.
func (s *serverAdmin) brings(x servers.Invalid) bool {
	return s.own && x.File != s.p.servers()
}
