package certs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

const (
	retryEnd = ".retry.json"
	maxRetry = 16 << 10
	maxTries = 64 // in a row that are counted
)

// retry is stored beside the certificates of a name whose last attempt failed or was
// cut off: yaya may be restarted again and again, and the authority counts requests.
type retry struct {
	Next   time.Time `json:"next"`
	Failed int       `json:"failed"`
	Why    string    `json:"why"`
}

// readRetry returns the stored state of a name, or nil. It does not believe implausible
// values: no file can delay a name's certificate longer than an authority can.
func (a *ACME) readRetry(name string, now time.Time) *retry {
	data, err := read(a.dir, name+retryEnd)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var r retry
	switch {
	case err != nil:
	case len(data) > maxRetry:
		err = fmt.Errorf("%s/%s has %d bytes", a.dir.Name(), name+retryEnd, len(data))
	default:
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		a.cfg.Log.Warn().Err(err).Str("host", name).Msg("when a certificate may be asked for again cannot be read: it is asked for after a moment")
		return &retry{Next: now.Add(afterOutage)}
	}
	r.Failed = min(max(r.Failed, 0), maxTries)
	r.Why = clean(r.Why)
	if latest := now.Add(mostAsked); r.Next.After(latest) {
		r.Next = latest
	}
	return &r
}

// waitAsKept restores the wait that a name's last attempt left.
func (a *ACME) waitAsKept(name string, now time.Time) {
	r := a.readRetry(name, now)
	s := a.state[name]
	if r == nil || s.Next.After(now) { // it is not due
		return
	}
	a.failed[name] = r.Failed
	if !r.Next.After(now) {
		return
	}
	s.Next = r.Next
	if r.Why != "" {
		s.Err = errors.New(r.Why)
	}
	a.cfg.Log.Warn().Str("host", name).Time("next", r.Next).Str("why", r.Why).Str("file", a.dir.Name()+"/"+name+retryEnd).Msg("the last try to get a certificate has failed: the next one waits, even after a restart (to ask at once, remove the file and start yaya again)")
}

// keepRetry stores when to try a name again, and removes the file for nil.
func (a *ACME) keepRetry(name string, r *retry) {
	err := func() error {
		if r == nil {
			if err := a.dir.Remove(name + retryEnd); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		data, err := json.Marshal(r)
		if err == nil {
			_, err = atomicfile.Write(a.dir, name+retryEnd, append(data, '\n'))
		}
		return err
	}()
	if err != nil {
		a.cfg.Log.Error().Err(err).Str("host", name).Msg("when a certificate may be asked for again cannot be kept: a restart asks at once")
	}
}
