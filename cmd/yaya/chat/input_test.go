package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// api records requests, and answers each with an empty object.
type api struct {
	mu   sync.Mutex
	sent []string
	body string // of answers; "" is {}
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct {
		Parts    []Part
		Delivery string
	}
	line := r.Method + " " + r.URL.Path
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return nil, err
		}
		line += " " + in.Delivery + " " + textOf(in.Parts)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, strings.TrimRight(line, " "))
	body := a.body
	if body == "" {
		body = "{}"
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// take returns the requests since the last time.
func (a *api) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := strings.Join(a.sent, "\n")
	a.sent = nil
	return out
}

// typing starts the program on a terminal with an API; dir is the data directory.
func typing(t *testing.T, dir string, prepare ...func(*terminal)) (*terminal, *api) {
	t.Helper()
	a := &api{}
	return start(t, 80, 24, colorprofile.ASCII, append(prepare, func(x *terminal) {
		x.m.api = &Client{HTTP: &http.Client{Transport: a}, Base: "http://yaya"}
		x.m.history.dir = dir
		if err := x.m.history.load(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.m.history.writes.Wait)
	})...), a
}

// keys types, one key after the other.
func (x *terminal) keys(keys ...string) {
	for _, k := range keys {
		x.emu.SendText(k)
		time.Sleep(200 * time.Millisecond) // the terminal's library waits for the rest of a sequence
		x.settle()
	}
}

const (
	enter = "\r"
	esc   = "\x1b"
	up    = "\x1b[A"
	down  = "\x1b[B"
	tab   = "\t"
	ctrlC = "\x03"
)

const sent = "POST /v1/sessions/sess_1/messages queue "

// USE-12: the keys that send, begin another line, and edit as in a shell.
func TestKeys(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		want string
	}{
		"enter":                  {[]string{"hello", enter}, "hello"},
		"a backslash and enter":  {[]string{`one\`, enter, "two", enter}, "one\ntwo"},
		"a backslash in between": {[]string{`a\b`, enter}, `a\b`},
		"alt and enter":          {[]string{"one", "\x1b\r", "two", enter}, "one\ntwo"},
		"ctrl+j":                 {[]string{"one", "\n", "two", enter}, "one\ntwo"},
		"start and end":          {[]string{"b", "\x01", "a", "\x05", "c", enter}, "abc"},
		"kill and yank":          {[]string{"one two", "\x17", "\x15", "x ", "\x19", enter}, "x one"},
		"kill to the end":        {[]string{"one two", "\x1bb", "\x0b", "\x01", "\x19", " ", enter}, "two one"},
		"characters":             {[]string{"abc", "\x02", "\x02", "\x04", "\x08", "x", enter}, "xc"},
		"words":                  {[]string{"one two", "\x1bb", "\x1bd", "2", enter}, "one 2"},
		"a word of wide ones":    {[]string{"漢字 👍", "\x17", "x", enter}, "漢字 x"},
		"a paste":                {[]string{"\x1b[200~one\r\ntwo\n\x1b[201~", "end", enter}, "one\ntwo\nend"},
		"a paste that hides":     {[]string{"\x1b[200~a\u202eb\u200b\u0007c👨\u200d👩\x1b[201~", enter}, "abc👨\u200d👩"},
		"ctrl+c empties":         {[]string{"no", ctrlC, "yes", enter}, "yes"},
		"and ctrl+y undoes that": {[]string{"no", ctrlC, "\x19", enter}, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, a := typing(t, "")
				x.keys(c.keys...)
				if got := a.take(); got != sent+c.want {
					t.Errorf("sent %q, want %q", got, sent+c.want)
				}
			})
		})
	}
}

// A long paste arrives whole, and its middle is not on the screen.
func TestLongPaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, a := typing(t, "")
		text := strings.TrimSpace(strings.Repeat("a line\n", 3000))
		x.keys("\x1b[200~"+text+"\x1b[201~", enter)
		if got := a.take(); got != sent+text {
			t.Errorf("%d bytes were sent, want %d", len(got), len(sent+text))
		}
	})
}

// Ctrl+C once cancels the turn and twice leaves; other keys in between begin the count again.
func TestLeave(t *testing.T) {
	for name, c := range map[string]struct {
		running bool
		keys    []string
		left    bool
		want    string
	}{
		"once":                  {false, []string{ctrlC}, false, ""},
		"twice":                 {false, []string{ctrlC, ctrlC}, true, ""},
		"with a key in between": {false, []string{ctrlC, "x", ctrlC}, false, ""},
		"once in a turn":        {true, []string{ctrlC}, false, "POST /v1/sessions/sess_1/cancel"},
		"twice in a turn":       {true, []string{ctrlC, ctrlC}, true, "POST /v1/sessions/sess_1/cancel"},
		"esc in a turn":         {true, []string{esc}, false, "POST /v1/sessions/sess_1/cancel"},
		"esc":                   {false, []string{esc}, false, ""},
		"ctrl+d":                {false, []string{"\x04"}, true, ""},
		"ctrl+d in a text":      {false, []string{"x", "\x04"}, false, ""},
		"steering in a turn":    {true, []string{"left", "\x13"}, false, "POST /v1/sessions/sess_1/messages steer left"},
		"a message in a turn":   {true, []string{"later", enter}, false, sent + "later"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, a := typing(t, "")
				if c.running {
					x.take(ev("turn_started", "t1", `{"model":"m"}`))
				}
				x.keys(c.keys...)
				left := false
				select {
				case err := <-x.done:
					left = true
					x.done <- err // for the end of the test
				default:
				}
				if got := a.take(); left != c.left || got != c.want {
					t.Errorf("left %v, sent %q; want %v, %q", left, got, c.left, c.want)
				}
			})
		})
	}
}

// USE-12: the history brings back entries, those of earlier chats too, and no possible answers.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		x, a := typing(t, dir)
		x.keys("first", enter, "second", "\x1b\r", "line", enter, "second", "\x1b\r", "line", enter, " secret by a space", enter, "/reject because of hunter2", enter, "/help", enter)
		x.take(ev("approval_requested", "t1", `{"approval_id":"a1","tool_call_id":"c3","tool_name":"shell","input":{}}`))
		x.keys("hunter2", enter)
		a.take()
		x.keys("draft", up, up, up, up, enter) // /help, and two lines of the second, which is one entry
		if got := a.take(); got != sent+"first" {
			t.Errorf("four times up sent %q, want %q", got, sent+"first")
		}
		x.keys("draft", up, down, enter)
		if got := a.take(); got != sent+"draft" {
			t.Errorf("up and down sent %q, want the draft", got)
		}
	})
	at := filepath.Join(dir, historyFile)
	raw, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"text":"first"}` + "\n" + `{"text":"second\nline"}` + "\n" + `{"text":"/help"}` + "\n"; string(raw) != want {
		t.Errorf("the history is %s, want %s", raw, want)
	}
	if st, err := os.Stat(at); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the history is %v, %v, want 0600", st.Mode(), err)
	}
	synctest.Test(t, func(t *testing.T) {
		x, a := typing(t, dir)
		x.keys("i", "\x12") // Ctrl+R: what contains an i
		if got := x.text(); !strings.Contains(got, `  second\nline`) || !strings.Contains(got, "  first") || strings.Contains(got, "  /help  ") {
			t.Errorf("Ctrl+R shows\n%s", got)
		}
		x.keys(down, enter, enter)
		if got := a.take(); got != sent+"first" {
			t.Errorf("sent %q, want the second that contains an i, first", got)
		}
	})
}

// The history is bounded, a damaged line costs that line, and a link is not followed.
func TestHistoryFile(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", maxEntry)
	for i := range maxHistoryFile/maxEntry + 5 {
		if err := keep(dir, fmt.Sprint(i%10)+long[1:]); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(dir, historyFile)
	st, err := os.Stat(at)
	if err != nil || st.Size() > maxHistoryFile || st.Size() < maxHistoryFile-2*maxEntry {
		t.Errorf("the file has %d bytes, %v, want at most %d", st.Size(), err, maxHistoryFile)
	}
	var many strings.Builder
	for i := range maxEntries + 10 {
		fmt.Fprintf(&many, "{\"text\":\"%d\"}\n", i)
	}
	if err := os.WriteFile(at, []byte("\xff\n{\"text\":\"\n"+many.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &history{dir: dir}
	if err := h.load(); err != nil || len(h.entries) != maxEntries || h.entries[0] != "10" {
		t.Errorf("%d entries, %v, want %d without the damaged ones", len(h.entries), err, maxEntries)
	}
	h.add(long+"x", func(error) { t.Error("it is written") })
	if len(h.entries) != maxEntries || slices.Contains(h.entries, long+"x") {
		t.Errorf("an entry of %d bytes is kept, want at most %d", len(long)+1, maxEntry)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(other, []byte(`{"text":"mine"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, at); err != nil {
		t.Skip(err)
	}
	if err := (&history{dir: dir}).load(); err == nil {
		t.Error("a link is followed, want an error")
	}
	if err := keep(dir, "x"); err == nil {
		t.Error("a link is written to, want an error")
	}
}

// USE-12: Tab completes commands, their arguments, and files of the workspace.
func TestCompletion(t *testing.T) {
	ws := t.TempDir()
	for _, name := range []string{"main.go", "main_test.go", ".hidden", "src/deep/x.txt", ".git/config", "a b", "bad\x1b[2J"} {
		at := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Skip(err) // names that Windows refuses
		}
	}
	if err := os.Symlink("/", filepath.Join(ws, "out")); err != nil {
		t.Skip(err)
	}
	for name, c := range map[string]struct {
		keys []string
		want string // the input
	}{
		"a command":                   {[]string{"/und", tab}, "/undo "},
		"the first of several":        {[]string{"/re", tab, enter}, "/retry "},
		"the next":                    {[]string{"/re", tab, tab, enter}, "/reject "},
		"the one before":              {[]string{"/re", tab, "\x1b[Z", enter}, "/reject "},
		"closed by esc":               {[]string{"/re", tab, esc, "x"}, "/rex"},
		"a file":                      {[]string{"look at @src/d", tab, tab}, "look at @src/deep/x.txt "},
		"what they have in common":    {[]string{"@ma", tab, esc}, "@main"},
		"and one of them":             {[]string{"@ma", tab, down, enter}, "@main_test.go "},
		"in the middle of a text":     {[]string{"a  z", "\x02", "\x02", "@main.", tab}, "a @main.go  z"},
		"hidden, where it is wanted":  {[]string{"@.", tab}, "@.hidden "},
		"a path that leads out":       {[]string{"@../", tab}, "@../"},
		"a link that leads out":       {[]string{"@out/e", tab}, "@out/e"},
		"an argument":                 {[]string{"/open build", tab}, "/open sess_7 "},
		"a command with no arguments": {[]string{"/undo x", tab}, "/undo x"},
		"a word":                      {[]string{"hello", tab}, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, a := typing(t, "", func(x *terminal) { x.m.workspace = ws })
				a.body = `{"sessions":[{"id":"sess_7","title":"Why the build fails"},{"id":"sess_8","title":"other"}]}`
				x.keys(c.keys...)
				if got := x.m.input.Value(); got != c.want {
					t.Errorf("the input is %q, want %q", got, c.want)
				}
			})
		})
	}
	names, err := files(ws, "")
	if got := fmt.Sprint(names); err != nil || got != "[{@main.go } {@main_test.go } {@out } {@src/ }]" {
		t.Errorf("files() = %s, %v", got, err)
	}
}

// The menu and the hints on the screen.
func TestMenuScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := typing(t, "")
		x.keys("/s")
		golden(t, "80x24-hints", x.text())
		x.keys(tab, tab)
		golden(t, "80x24-menu", x.styled())
	})
}

// A panic of a goroutine of the chat ends the program as one of its own does: with the terminal as
// it was, and with an error.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, 80, 24, colorprofile.ASCII, func(x *terminal) {
			x.m.api = &Client{HTTP: &http.Client{Transport: panics{}}, Base: "http://yaya"}
		})
		x.p.Send(switched{session: Session{ID: "sess_2", Workspace: "/w"}})
		err := <-x.done
		x.done <- err // for the end of the test
		if !errors.Is(err, tea.ErrProgramPanic) {
			t.Errorf("it ended with %v, want %v", err, tea.ErrProgramPanic)
		}
		x.m.follow.cancel()
		x.m.follow.done.Wait()
		if x.emu.IsAltScreen() || x.emu.CursorHidden() {
			t.Error("the terminal keeps the chat's screen, or has no cursor")
		}
	})
}

type panics struct{}

func (panics) RoundTrip(*http.Request) (*http.Response, error) { panic("a defect") }

// A paste keeps what writing needs, and no text that nobody sees.
func TestPasteHidesNothing(t *testing.T) {
	m := newModel(t.Context(), nil, "/w")
	m.paste("a\U000e0101\U000e0102 \u0645\u06cc\u200c\u062e \u2764\ufe0f\u200d\U0001f525\ufe0f\ufe0e\u200b")
	if got, want := m.input.Value(), "a \u0645\u06cc\u200c\u062e \u2764\ufe0f\u200d\U0001f525\ufe0f"; got != want {
		t.Errorf("the input is %q, want %q", got, want)
	}
}
