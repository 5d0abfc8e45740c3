package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// LD-10, R30: of what is logged ten thousand times a second, two hundred lines are
// kept and the rest is counted.
func TestLogIsBounded(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	l := zerolog.New(zerolog.SyncWriter(&out))
	l = l.Sample(&logLimit{tell: l, now: func() time.Time { return now }})
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() {
			for range 1000 {
				l.Error().Msg("again")
			}
		})
	}
	writers.Wait()
	if n := strings.Count(out.String(), "again"); n != logLines {
		t.Errorf("%d lines", n)
	}
	now = now.Add(logWindow)
	out.Reset()
	l.Error().Msg("another")
	if got := out.String(); !strings.Contains(got, `"lines":9800`) || !strings.Contains(got, "another") {
		t.Error(got)
	}
	out.Reset()
	now = now.Add(logWindow)
	l.Error().Msg("and another")
	if got := out.String(); strings.Contains(got, "left out") || !strings.Contains(got, "and another") {
		t.Error(got)
	}
}
