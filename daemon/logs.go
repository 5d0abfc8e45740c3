package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/logfile"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Settings of the log.
const (
	logFile     = "log.file"
	logLevelKey = "log.level"
	logMaxMB    = "log.max_mb"
)

// logs is the log of a process. A daemon's follows its settings: it is written to standard
// error, or to the file of log.file.
type logs struct {
	zerolog.Logger
	verbose bool
	level   logLevel
	out     *logOut

	mu     sync.Mutex // held while settings are applied
	path   string     // of the file
	max    int64
	unused error // why the file of the setting is not used
}

// newLogs logs to w at level warn, or debug with --verbose.
func (g *Flags) newLogs(w io.Writer) *logs {
	l := &logs{verbose: g.Verbose, out: &logOut{people: forPeople(w)}}
	l.level.set(zerolog.WarnLevel)
	if g.Verbose {
		l.level.set(zerolog.DebugLevel)
	}
	base := zerolog.New(hiding{l.out, &g.Secrets}).Level(zerolog.DebugLevel).Hook(&l.level).With().Timestamp().Logger()
	l.Logger = base.Sample(&logLimit{tell: base, levels: &l.level, now: time.Now})
	return l
}

// logLevel is the lowest level that is logged. It can change at any time.
type logLevel struct{ lowest atomic.Int32 }

func (l *logLevel) set(level zerolog.Level) { l.lowest.Store(int32(level)) }

func (l *logLevel) hides(level zerolog.Level) bool { return int32(level) < l.lowest.Load() }

// Run implements [zerolog.Hook], for loggers with a sampler of their own.
func (l *logLevel) Run(e *zerolog.Event, level zerolog.Level, _ string) {
	if l.hides(level) {
		e.Discard()
	}
}

// logOut writes lines to the file, if there is one, else to people. They get a line that the
// file does not take, too.
type logOut struct {
	people io.Writer

	mu      sync.RWMutex // held by writers of a line as readers
	file    *logfile.File
	failing atomic.Pointer[error] // why the file takes no lines, and people know
}

// Write implements [io.Writer].
func (o *logOut) Write(line []byte) (int, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.file == nil {
		return o.people.Write(line)
	}
	_, err := plainLines{o.file}.Write(line)
	if err == nil {
		o.failing.Store(nil)
		return len(line), nil
	}
	if o.failing.Swap(&err) == nil {
		if why, err := json.Marshal(map[string]string{"level": "error", "error": err.Error(), "message": "the log file cannot be written: lines go to standard error until it can"}); err == nil {
			_, _ = o.people.Write(append(why, '\n')) // the line itself follows
		}
	}
	return o.people.Write(line)
}

// use has lines written to a file from now on, nil for people.
func (o *logOut) use(file *logfile.File) error {
	o.mu.Lock()
	old := o.file
	o.file = file
	o.mu.Unlock()
	o.failing.Store(nil)
	if old == nil {
		return nil
	}
	return old.Close()
}

// apply makes the settings hold. A file that cannot be opened leaves the log where it is.
func (l *logs) apply(s *config.Store) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if level, err := zerolog.ParseLevel(s.Text(logLevelKey)); err == nil && !l.verbose {
		l.level.set(level)
	}
	path, limit := s.Text(logFile), int64(s.Int(logMaxMB))<<20
	l.unused = nil
	if path == l.path && limit == l.max {
		return
	}
	var file *logfile.File
	if path != "" {
		var err error
		if file, err = logfile.Open(path, limit); err != nil {
			l.unused = err
			l.Error().Err(err).Msg("the setting log.file cannot be used: the log stays where it is (yaya config set log.file PATH)")
			return
		}
	}
	if err := l.out.use(file); err != nil {
		l.Warn().Err(err).Msg("the log file that was written so far may be incomplete")
	}
	l.path, l.max = path, limit
}

// reopen goes on in the file that has the path of the setting now: something may have moved
// the other one away, or may have made room for one that could not be opened.
func (l *logs) reopen(s *config.Store) {
	if l == nil {
		return
	}
	l.apply(s)
	l.out.mu.RLock()
	file := l.out.file
	l.out.mu.RUnlock()
	if file == nil {
		return
	}
	if err := file.Reopen(); err != nil {
		l.Error().Err(err).Msg("the log file cannot be opened again")
	}
}

// diagnosis says why lines do not go to the file of the setting, false if they do. Without a
// daemon it tries the file.
func (l *logs) diagnosis(s *config.Store) (plugin.Diagnosis, bool) {
	var err error
	switch path := s.Text(logFile); {
	case path == "":
	case l == nil:
		err = logfile.Check(path)
	default:
		l.mu.Lock()
		err = l.unused
		l.mu.Unlock()
		if why := l.out.failing.Load(); why != nil && err == nil {
			err = *why
		}
	}
	if err == nil {
		return plugin.Diagnosis{}, false
	}
	return plugin.Diagnosis{Plugin: "log", HealthReport: plugin.HealthReport{
		Status: plugin.Degraded, Summary: fmt.Sprintf("lines of the log do not go to the file of the setting %s: %v; correct that, and run yaya reload", logFile, err),
	}}, true
}

// follow has changed settings hold at once.
func (l *logs) follow(b *bus.Bus, s *config.Store) (*bus.Subscription, error) {
	return bus.On(b, bus.SubscribeOptions{Name: "log"}, event.ConfigWasUpdated, func(context.Context, event.Event, event.ConfigUpdated) error {
		l.apply(s)
		return nil
	})
}

// Close closes the file; what is logged later goes to standard error.
func (l *logs) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = ""
	return l.out.use(nil)
}

// logSetting refuses a log file that cannot be used, or would depend on the current folder.
func logSetting(key string, v json.RawMessage) error {
	if key != logFile {
		return nil
	}
	var path string
	if err := json.Unmarshal(v, &path); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	switch {
	case path == "":
		return nil
	case !filepath.IsAbs(path):
		return fmt.Errorf("%s: the path must be absolute, such as /var/log/yaya.log", key)
	}
	if err := logfile.Check(path); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
