package mcpbridge

import (
	"cmp"
	"maps"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/linelog"
)

// maxLogs bounds the servers that were removed and whose lines are still kept.
const maxLogs = 256

// log returns what keeps the lines of a server. It outlives the server: why one was
// stopped is of interest afterwards.
func (b *Bridge) log(name string) *linelog.Ring {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.logs[name]; r != nil {
		return r
	}
	if len(b.logs) >= maxLogs {
		maps.DeleteFunc(b.logs, func(name string, _ *linelog.Ring) bool { return b.providers[name] == nil })
	}
	r := new(linelog.Ring)
	b.logs[name] = r
	return r
}

// said returns what takes what a server says for people. It is kept without secrets.
func (b *Bridge) said(name string) func(stream, level, text string) {
	r := b.log(name)
	return func(stream, level, text string) { r.Add(stream, level, b.masked(text)) }
}

// Logs returns what a server has said lately: its standard error, its log messages,
// and how it fared. It is nil if no server of that name was started.
func (b *Bridge) Logs(name string) *linelog.Ring {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.logs[name]
}

// noteState puts a state that a server has come to among its lines.
func (b *Bridge) noteState(st feature.Status) {
	text := string(st.State)
	if why := cmp.Or(st.Reason, st.LastError); why != "" && !st.State.Usable() {
		text += ": " + why
	}
	b.mu.Lock()
	r := b.logs[st.ID]
	known := r != nil && b.states[st.ID] == text
	if r != nil {
		b.states[st.ID] = text
	}
	b.mu.Unlock()
	if r != nil && !known {
		r.Add("yaya", "", text)
	}
}
