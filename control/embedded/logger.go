package embedded

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/cut"
)

// maxLine is how many characters of a line are logged: others have a say in it.
const maxLine = 500

// perSecond is how many lines are logged in a second: each connection of a stranger is one.
const perSecond = 20

// logger passes on the server's log, each line at a lower level: the server notes each connection, and
// warns while it waits for the other nodes.
type logger struct {
	log    zerolog.Logger
	failed atomic.Bool
	fatal  chan error // the first reason why the server cannot go on
}

func newLogger(log zerolog.Logger) *logger {
	return &logger{log: log.Sample(&zerolog.BurstSampler{Burst: perSecond, Period: time.Second}), fatal: make(chan error, 1)}
}

func (l *logger) Noticef(format string, v ...any) { l.say(l.log.Debug(), format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.say(l.log.Debug(), format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.say(l.log.Trace(), format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.say(l.log.Info(), format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.say(l.log.Warn(), format, v) }

// Fatalf does not end the process, as it would that of a server of its own.
func (l *logger) Fatalf(format string, v ...any) {
	if l.failed.CompareAndSwap(false, true) {
		l.fatal <- errors.New(cut.Line(fmt.Sprintf(format, v...), maxLine))
	}
	l.say(l.log.Error(), format, v)
}

func (l *logger) say(e *zerolog.Event, format string, v []any) {
	if e.Enabled() {
		e.Str("nats", cut.Line(fmt.Sprintf(format, v...), maxLine)).Msg("the log's server")
	}
}
