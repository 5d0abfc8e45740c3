package tool

// SetView sets which tools the agent of a session may use, before the first turn: of returns
// nil for all. It is asked at the beginning of each turn.
func (r *Registry) SetView(of func(session string) func(*Definition) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view = of
}

// may returns the view of a session, nil for one of all tools.
func (r *Registry) may(session string) func(*Definition) bool {
	r.mu.Lock()
	of := r.view
	r.mu.Unlock()
	if of == nil {
		return nil
	}
	return of(session)
}

// seen returns what a session's agent sees of a snapshot.
func (r *Registry) seen(session string, s *Snapshot) *Snapshot {
	if may := r.may(session); may != nil {
		return s.only(may)
	}
	return s
}

// Sees reports whether the view of a session has room for a definition, such as that of an operation
// that is not a registered tool. A session without a view has room for all.
func (r *Registry) Sees(session string, def *Definition) bool {
	may := r.may(session)
	return may == nil || may(def)
}

// only returns the part of a snapshot with the tools for which may reports true. Those that it
// leaves out cannot be called by any name.
func (s *Snapshot) only(may func(*Definition) bool) *Snapshot {
	out := &Snapshot{generation: s.generation, byName: map[string]*Entry{}, withheld: map[string]Withheld{}}
	for name, e := range s.byName {
		if may(&e.Def) {
			out.byName[name] = e
		}
	}
	for _, e := range s.listed {
		if may(&e.Def) {
			out.listed = append(out.listed, e)
		}
	}
	for name, w := range s.withheld {
		if may(&w.Def) {
			out.withheld[name] = w
		}
	}
	return out
}
