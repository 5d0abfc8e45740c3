package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/kernel/config"
)

// settingsIn opens settings below a new folder.
func settingsIn(t *testing.T) *config.Store {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put sets a setting, and applies it.
func put(t *testing.T, l *logs, s *config.Store, key, value string) {
	t.Helper()
	raw, err := json.Marshal(value)
	if err == nil {
		err = s.Set(key, raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.apply(s)
}

// OP-62: the level of a log holds from the moment at which it is set, for every logger that
// was made of it, whatever that one samples.
func TestLogLevelFollowsTheSetting(t *testing.T) {
	var g Flags
	var out bytes.Buffer
	l, s := g.newLogs(&out), settingsIn(t)
	child := l.With().Str("part", "x").Logger()
	sampled := child.Sample(&zerolog.BasicSampler{N: 1})
	for _, c := range []struct {
		level string
		want  string
	}{{"warn", "warn error"}, {"debug", "debug info warn error"}, {"error", "error"}, {"info", "info warn error"}} {
		put(t, l, s, logLevelKey, c.level)
		for name, log := range map[string]zerolog.Logger{"it": l.Logger, "a child": child, "a sampled child": sampled} {
			out.Reset()
			log.Debug().Msg("debug")
			log.Info().Msg("info")
			log.Warn().Msg("warn")
			log.Error().Msg("error")
			var got []string
			for line := range strings.Lines(out.String()) {
				var x struct{ Level string }
				if err := json.Unmarshal([]byte(line), &x); err != nil {
					t.Fatal(err)
				}
				got = append(got, x.Level)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("at level %s, %s has %q, want %q", c.level, name, got, c.want)
			}
		}
	}
	verbose := Flags{Verbose: true}
	l = verbose.newLogs(&out)
	put(t, l, s, logLevelKey, "error")
	out.Reset()
	if l.Debug().Msg("debug"); out.Len() == 0 {
		t.Error("the setting hides what --verbose asks for")
	}
}

// OP-60, OP-61: the log moves to the file of the setting and back while it is written, without
// secrets, and stays where it is if the file cannot be used.
func TestLogFollowsItsFile(t *testing.T) {
	var g Flags
	g.Secrets.Learn("canary/known")
	var out bytes.Buffer
	l, s := g.newLogs(&out), settingsIn(t)
	path := filepath.Join(t.TempDir(), "yaya.log")
	put(t, l, s, logFile, path)
	l.Warn().Str("token", "canary").Msg("to the file: canary/known")
	put(t, l, s, logFile, filepath.Join(path, "nowhere"))
	l.Warn().Msg("still to the file")
	put(t, l, s, logFile, "")
	l.Warn().Msg("to people")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data); strings.Contains(got, "canary") || !strings.Contains(got, "to the file: ****") || !strings.Contains(got, "log.file cannot be used") || !strings.Contains(got, "still to the file") {
		t.Errorf("the file has %s, want two lines and the reason between them, without secrets", got)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "to people") {
		t.Errorf("standard error has %s, want one line", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// OP-60: a line that the file does not take goes to standard error, with the reason once.
func TestLogOutlivesItsFile(t *testing.T) {
	var g Flags
	var out bytes.Buffer
	l, s := g.newLogs(&out), settingsIn(t)
	put(t, l, s, logFile, filepath.Join(t.TempDir(), "yaya.log"))
	if err := l.out.file.Close(); err != nil { // as a disk that fails
		t.Fatal(err)
	}
	l.Warn().Msg("one")
	l.Warn().Msg("two")
	if got := out.String(); strings.Count(got, "cannot be written") != 1 || !strings.Contains(got, `"one"`) || !strings.Contains(got, `"two"`) {
		t.Errorf("standard error has %s, want both lines and the reason once", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// OP-60: a reload goes on in the file that has the path, and opens one that could not be opened
// before; until then the doctor says why lines go elsewhere.
func TestLogReopens(t *testing.T) {
	var g Flags
	var out bytes.Buffer
	l, s := g.newLogs(&out), settingsIn(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "no", "yaya.log")
	put(t, l, s, logFile, path)
	if d, is := l.diagnosis(s); !is || !strings.Contains(d.Summary, path) {
		t.Errorf("the doctor says %+v, %v, want why %s is not used", d, is, path)
	}
	if d, is := (*logs)(nil).diagnosis(s); !is || !strings.Contains(d.Summary, path) {
		t.Errorf("without a daemon the doctor says %+v, %v, want the same", d, is)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l.reopen(s)
	l.Warn().Msg("one")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	l.reopen(s)
	l.Warn().Msg("two")
	if d, is := l.diagnosis(s); is {
		t.Errorf("the doctor says %+v, want nothing", d)
	}
	if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), "one") || !strings.Contains(string(data), "two") {
		t.Errorf("the file has %s, %v, want the second line alone", data, err)
	}
	if err := l.out.file.Close(); err != nil { // as a disk that fails
		t.Fatal(err)
	}
	l.Warn().Msg("three")
	if _, is := l.diagnosis(s); !is {
		t.Error("the doctor is silent about a file that takes no lines")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLogSetting(t *testing.T) {
	for value, want := range map[string]string{`"yaya.log"`: "must be absolute", `""`: "", `"/var/yaya.log"`: "", `"/no/such/folder/yaya.log"`: "/no/such/folder", `"/etc/passwd"`: "not a log"} {
		err := logSetting(logFile, json.RawMessage(value))
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("logSetting(%s) = %v, want %q", value, err, want)
		}
	}
}
