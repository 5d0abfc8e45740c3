package mcpbridge

import (
	"maps"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/linelog"
)

// maxLogs bounds the removed servers whose lines are still kept.
const maxLogs = 256

// log returns the log of a server. It outlives the server, to explain afterwards why the server
// stopped.
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

// logTo returns the function that logs a server's output for people. The log contains no
// secrets.
func (b *Bridge) logTo(name string) func(stream, level, text string) {
	r := b.log(name)
	return func(stream, level, text string) { r.Add(stream, level, b.masked(text)) }
}

// Logs returns the recent log of a server: its standard error, its log messages, and its
// states. It returns nil if no server of that name was started.
func (b *Bridge) Logs(name string) *linelog.Ring {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.logs[name]
}

// noteState adds a new state of a server to its log.
func (b *Bridge) noteState(st feature.Status) {
	text := string(st.State)
	if st.Reason != "" && !st.State.Usable() && st.State != feature.Starting { // the failure before that has a line of its own
		text += ": " + st.Reason
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
