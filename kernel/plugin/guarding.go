package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

const (
	guardsFile = "guards.json" // in the plugin's directory: the points that it guards
	maxGuards  = 4 << 10       // bytes of the file
)

// guards are the names of the plugins that guard, by point, in the order in which they were
// first declared. It is not changed once it is published.
type guards map[string][]string

// Expect has plugins that have guarded when they were last loaded guard already, before they
// are loaded again: calls that come first are denied. Those that are switched off guard nothing.
func (r *Registry) Expect() error {
	all, err := fs.ReadDir(r.cfg.State.FS(), ".")
	if err != nil {
		return fmt.Errorf("which plugins guard: %w", err)
	}
	for _, d := range all {
		if d.IsDir() && namePattern().MatchString(d.Name()) {
			r.setGuards(d.Name(), r.recorded(d.Name()))
		}
	}
	return nil
}

// Missing returns the plugins that guard, and are neither loaded nor listed: their files are
// damaged. They deny until somebody installs or removes them, or switches them off.
func (r *Registry) Missing() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, point := range GuardPoints() {
		for _, name := range r.at(point) {
			if r.byName[name] == nil && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// setGuards publishes what a plugin guards.
func (r *Registry) setGuards(name string, points []string) {
	r.guarding.Lock()
	defer r.guarding.Unlock()
	next := guards{}
	if was := r.guards.Load(); was != nil {
		for point, names := range *was {
			next[point] = slices.Clone(names)
		}
	}
	for _, point := range GuardPoints() {
		at := slices.Index(next[point], name)
		switch wanted := slices.Contains(points, point); {
		case wanted && at < 0:
			next[point] = append(next[point], name)
		case !wanted && at >= 0:
			next[point] = slices.Delete(next[point], at, at+1)
		}
		if len(next[point]) == 0 {
			delete(next, point)
		}
	}
	if len(next) == 0 {
		r.guards.Store(nil)
		return
	}
	r.guards.Store(&next)
}

// at returns the plugins that guard a point.
func (r *Registry) at(point string) []string {
	all := r.guards.Load()
	if all == nil {
		return nil
	}
	return (*all)[point]
}

// Guards returns the points that a plugin guards, even if it is not loaded.
func (r *Registry) Guards(name string) (out []string) {
	for _, point := range GuardPoints() {
		if slices.Contains(r.at(point), name) {
			out = append(out, point)
		}
	}
	return out
}

// recorded returns the points that a plugin has guarded when it was last loaded. All of them
// if that cannot be read: nobody can say that it guarded nothing.
func (r *Registry) recorded(name string) []string {
	at := path.Join(name, guardsFile)
	info, err := r.cfg.State.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var raw []byte
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxGuards) {
		err = errors.New("it is not a small file")
	}
	if err == nil {
		raw, err = r.cfg.State.ReadFile(at)
	}
	var points []string
	if err == nil {
		err = json.Unmarshal(raw, &points)
	}
	if err == nil {
		err = CheckGuards(points)
	}
	if err == nil && len(points) == 0 { // such a file is not written
		err = errors.New("it names nothing")
	}
	if err != nil {
		r.cfg.Log.Error().Err(err).Str("plugin", name).Msg("what a plugin guards cannot be read: until it is loaded, it counts as guarding everything")
		return GuardPoints()
	}
	return points
}

// record writes down what a plugin guards, for the time before it is loaded again.
func (r *Registry) record(name string, points []string) error {
	if slices.Equal(r.recorded(name), points) {
		return nil
	}
	at := path.Join(name, guardsFile)
	if len(points) == 0 {
		if err := r.cfg.State.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	raw, err := json.Marshal(points)
	if err != nil {
		return err
	}
	if err := r.cfg.State.MkdirAll(name, 0o700); err != nil {
		return err
	}
	return r.cfg.State.WriteFile(at, raw, 0o600)
}

// beginGuard has a plugin that is about to be loaded guard what it says, and what it has
// guarded before: its files may have been changed, and then it is not loaded.
func (r *Registry) beginGuard(m Manifest) error {
	was := r.recorded(m.Name)
	all := slices.Clone(was)
	for _, point := range m.Guards {
		if !slices.Contains(all, point) {
			all = append(all, point)
		}
	}
	r.setGuards(m.Name, all)
	if len(all) == len(was) {
		return nil
	}
	return r.record(m.Name, all)
}

// settleGuard has a plugin that is loaded guard what it says, and nothing else.
func (r *Registry) settleGuard(m Manifest) {
	r.setGuards(m.Name, m.Guards)
	if err := r.record(m.Name, m.Guards); err != nil { // it has guarded more, and does so until it is loaded again
		r.cfg.Log.Error().Err(err).Str("plugin", m.Name).Msg("what a plugin guards could not be written down")
	}
}

// endGuard has a plugin guard nothing: a person has removed it.
func (r *Registry) endGuard(name string) error {
	r.setGuards(name, nil)
	if err := r.record(name, nil); err != nil {
		return fmt.Errorf("plugin %s: it goes on to guard from the next start on: %w", name, err)
	}
	return nil
}
