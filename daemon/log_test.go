package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/termtext"
)

// LD-10, R30: of what is logged ten thousand times a second, two hundred lines are
// kept and the rest is counted, whichever line begins a second.
func TestLogIsBounded(t *testing.T) {
	const seconds, writers, each = 30, 10, 10_000
	var out bytes.Buffer
	var asked atomic.Int64
	now := func() time.Time { // a second passes with every ten thousand lines
		return time.Unix(1000, 0).Add(time.Duration((asked.Add(1)-1)/each) * logWindow)
	}
	l := zerolog.New(zerolog.SyncWriter(&out))
	l = l.Sample(&logLimit{tell: l, levels: new(logLevel), now: now})
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range seconds * each / writers {
				l.Error().Msg("again")
			}
		})
	}
	all.Wait()
	if kept, want := strings.Count(out.String(), "again"), seconds*logLines; kept != want {
		t.Errorf("%d lines are kept in %d seconds, want %d", kept, seconds, want)
	}
	if told, want := strings.Count(out.String(), `"lines":9800,`), seconds-1; told != want {
		t.Errorf("%d seconds tell that 9,800 lines were left out before, want %d", told, want)
	}
	out.Reset()
	l.Error().Msg("another")
	if got := out.String(); !strings.Contains(got, `"lines":9800,`) || !strings.Contains(got, "another") {
		t.Errorf("got %v, want the lines that were left out, and another", got)
	}
	out.Reset()
	asked.Add(each)
	l.Error().Msg("and another")
	if got := out.String(); strings.Contains(got, "left out") || !strings.Contains(got, "and another") {
		t.Errorf("got %v, want nothing of lines that were left out, and another", got)
	}
}

// Y-143: nor does what is logged, on a terminal and elsewhere.
func TestNothingIsLoggedRaw(t *testing.T) {
	for name, w := range map[string]func(io.Writer) io.Writer{
		"for people": consoleLog,
		"as JSON":    func(w io.Writer) io.Writer { return plainLines{w} },
	} {
		var out bytes.Buffer
		l := zerolog.New(w(&out))
		l.Warn().Str("text", termtext.Evil).Strs("list", []string{termtext.Evil}).Err(errors.New(termtext.Evil)).Any("object", map[string]any{"a": termtext.Evil}).Msg("said: " + termtext.Evil)
		got := regexp.MustCompile("\x1b\\[\\d+m").ReplaceAllString(out.String(), "") // its own colours
		if strings.Count(got, "é 😀") != 5 {
			t.Errorf("%s: not all of it is there: %q", name, got)
		}
		termtext.Safe(t, name, got)
	}
}

// The log hides known secrets, and values that are named like them, in every field.
func TestLogHidesSecrets(t *testing.T) {
	var g Flags
	g.Secrets.Learn("canary/known ä")
	var out bytes.Buffer
	log := g.NewLog(&out)
	log.Error().Str("token", "canary").Str("url", "https://h/?api_key=canary&q=canary%2Fknown+%C3%A4").Strs("args", []string{"--password", "canary"}).Str("server", "files").Msg("it said: canary/known ä")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("the line is not JSON: %v: %s", err, out.Bytes())
	}
	if strings.Contains(out.String(), "canary") || line["server"] != "files" || line[zerolog.MessageFieldName] != "it said: "+masked.Mask {
		t.Errorf("got %s, want it without secrets", out.Bytes())
	}
}
