package traffic

import (
	"time"
)

// writer is the private state of a log's goroutine.
type writer struct {
	l       *Log
	store   store
	clients map[string]client // by the bytes that they say it in
	queue   []entry
	bodies  []byte
	out     []byte
	masked  []byte
	failing bool
	refill  time.Time
	told    time.Time // that calls were dropped
	told0   uint64    // how many
	clock   time.Time // when it was last looked at
}

func (w *writer) run() {
	l := w.l
	defer close(l.stopped)
	defer w.store.close()
	defer w.save()
	w.refill, w.clock = time.Now(), time.Now()
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	save := time.NewTimer(saveDays)
	save.Stop()
	defer save.Stop()
	saving := false
	for {
		select {
		case <-l.wake:
			t := time.NewTimer(gather)
			select {
			case <-t.C:
			case <-l.done:
				t.Stop()
			}
			w.flush()
			if !saving {
				save.Reset(saveDays)
				saving = true
			}
		case <-save.C:
			saving = false
			w.save()
		case <-tidy.C:
			l.configure()
			w.tidy()
		case <-l.done:
			w.flush()
			return
		}
	}
}

// take moves the queue to the writer.
func (w *writer) take() {
	l := w.l
	// The memory of a burst is released when it is over.
	if cap(w.bodies) > keptBuffer && len(w.bodies) < cap(w.bodies)/4 {
		w.bodies = nil
	}
	if cap(w.queue) > maxQueued/8 && len(w.queue) < cap(w.queue)/4 {
		w.queue = nil
	}
	clear(w.queue)
	now := time.Now()
	more := int(min(now.Sub(w.refill), time.Minute).Seconds() * bodiesASec)
	w.refill = now
	l.mu.Lock()
	defer l.mu.Unlock()
	w.queue, l.queue = l.queue, w.queue[:0]
	w.bodies, l.bodies = l.bodies, w.bodies[:0]
	l.room = min(l.room+more, maxBodies)
	if l.lost.Busy > w.told0 && now.Sub(w.told) > warnDropped {
		l.cfg.Log.Warn().Uint64("calls", l.lost.Busy-w.told0).Msg("calls came faster than they could be recorded: some are missing in the record of calls")
		w.told, w.told0 = now, l.lost.Busy
	}
}

func (w *writer) flush() {
	s := w.l.configure()
	w.take()
	if len(w.queue) == 0 {
		return
	}
	if err := w.write(s); err != nil {
		if !w.failing { // told once, until it works again
			w.l.cfg.Log.Error().Err(err).Msg("calls cannot be recorded: the record of calls has a gap until this is mended; the calls themselves go on")
		}
		w.failing = true
	} else if w.failing {
		w.failing = false
		w.l.cfg.Log.Info().Msg("calls are recorded again")
	}
	w.l.mu.Lock()
	w.l.tried += uint64(len(w.queue))
	close(w.l.news)
	w.l.news = make(chan struct{})
	w.l.mu.Unlock()
}

// write writes the queue, under the lock of the directory.
func (w *writer) write(s Settings) (err error) {
	written := 0
	defer func() {
		if n := len(w.queue) - written; n > 0 && err != nil {
			w.l.mu.Lock()
			w.l.lost.Failed += uint64(n)
			w.l.mu.Unlock()
		}
	}()
	unlock, err := w.store.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.store.load(); err != nil {
		return err
	}
	w.out = w.out[:0]
	rest := w.bodies
	held := 0
	for i := range w.queue {
		e := &w.queue[i]
		rest = w.encode(e, rest, s.Bodies)
		held++
		if len(w.out) < 256<<10 && i < len(w.queue)-1 {
			continue
		}
		if err := w.store.append(w.out, held, s); err != nil {
			return err
		}
		written, held, w.out = written+held, 0, w.out[:0]
	}
	if cap(w.out) > keptBuffer {
		w.out = nil
	}
	return nil
}
