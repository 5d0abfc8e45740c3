package daemon

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/masked"
)

// NewLog logs to w: for people on a terminal, as JSON lines elsewhere,
// in both without secrets.
func (g *Flags) NewLog(w io.Writer) zerolog.Logger { return g.newLogs(w).Logger }

// forPeople returns what shows lines of a log on w.
func forPeople(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor fits
		return consoleLog(w)
	}
	return plainLines{w}
}

// hiding writes lines of a log without secrets.
type hiding struct {
	w       io.Writer
	secrets *masked.Secrets
}

func (h hiding) Write(line []byte) (int, error) {
	if _, err := h.w.Write(h.secrets.Append(nil, line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// consoleLog writes lines for people. Words of servers are in them, which the writer
// quotes in fields that are text, and nowhere else.
func consoleLog(w io.Writer) io.Writer {
	return zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, FormatPrepare: func(line map[string]any) error {
		for name, v := range line {
			if _, text := v.(string); !text || name == zerolog.MessageFieldName {
				line[name] = cleanAll(v)
			}
		}
		return nil
	}}
}

// cleanAll is v with the text in it made safe for a terminal.
func cleanAll(v any) any {
	switch v := v.(type) {
	case string:
		return feature.Clean(v, 16<<10)
	case []any:
		for i := range v {
			v[i] = cleanAll(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[feature.Clean(name, 1<<10)] = cleanAll(x)
		}
		return out
	}
	return v
}

// plainLines writes lines of JSON that a terminal can be shown.
type plainLines struct{ w io.Writer }

func (l plainLines) Write(line []byte) (int, error) {
	if _, err := l.w.Write(PlainJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Lines that are logged within logWindow; of more only their number is.
const (
	logLines  = 200
	logWindow = time.Second
)

// logLimit bounds what is logged: whatever goes wrong ten thousand times a second
// does not fill the disk. It is a [zerolog.Sampler], safe for concurrent use.
type logLimit struct {
	tell   zerolog.Logger
	levels *logLevel
	now    func() time.Time

	mu      sync.Mutex
	began   time.Time // of the window
	lines   int64     // kept within it
	dropped int64     // and left out
}

// Sample implements [zerolog.Sampler].
func (l *logLimit) Sample(level zerolog.Level) bool {
	if l.levels.hides(level) { // it does not count
		return false
	}
	keeps, dropped := l.count()
	if dropped > 0 {
		l.tell.Warn().Int64("lines", dropped).Msg("too much was to be logged, and was left out")
	}
	return keeps
}

// count counts a line. It reports whether the line is kept, and how many were left out before
// the window that it begins.
func (l *logLimit) count() (keeps bool, dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.began) >= logWindow {
		dropped = l.dropped
		l.began, l.lines, l.dropped = now, 0, 0
	}
	if l.lines == logLines {
		l.dropped++
		return false, dropped
	}
	l.lines++
	return true, dropped
}

// tellEscapees logs that processes were killed which had lost the first process of their
// sandbox, at most ten times a minute.
func tellEscapees(log zerolog.Logger) func(killed int) {
	log = log.Sample(&zerolog.BurstSampler{Burst: 10, Period: time.Minute})
	return func(killed int) {
		log.Warn().Int("killed", killed).Msg("killed processes of a sandbox that had lost its first process, which ends what they leave")
	}
}
