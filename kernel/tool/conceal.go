package tool

import (
	"bytes"
	"slices"
	"sync"
)

// conceal returns a result without the secrets in it. A native result arrives without
// them.
func (d *Dispatcher) conceal(res Result) Result {
	s := d.cfg.Secrets
	if res.Native != nil || !s.Declared() {
		return res
	}
	res.Brief = s.ConcealString(res.Brief)
	for i, b := range res.Display {
		c := Block{b.Kind, s.ConcealString(b.Text), s.ConcealString(b.Markdown), s.Concealed(b.Data, true)}
		if c.Text == b.Text && c.Markdown == b.Markdown && bytes.Equal(c.Data, b.Data) {
			continue
		}
		res.Display = slices.Clone(res.Display) // which may belong to the tool
		res.Display[i] = c
	}
	res.Structured, res.Detail = s.Concealed(res.Structured, true), s.Concealed(res.Detail, true)
	return res
}

// concealProgress removes secrets from a call's progress, even one that is split over
// several steps. Native progress arrives without them.
func (d *Dispatcher) concealProgress(call *Call) {
	report, s := call.Progress, d.cfg.Secrets
	if report == nil || !s.Declared() {
		return
	}
	var mu sync.Mutex
	joint := s.Joint()
	call.Progress = func(p Progress) {
		if p.Native == nil {
			mu.Lock()
			p.Message = joint.Next(p.Message)
			mu.Unlock()
		}
		report(p)
	}
}
