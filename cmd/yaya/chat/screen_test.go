package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/vt"
)

var update = flag.Bool("update", false, "write the screens of testdata/screens")

// terminal is the program on an emulated terminal, in a bubble of [synctest].
type terminal struct {
	t    *testing.T
	emu  *vt.SafeEmulator
	m    *model
	p    *tea.Program
	done chan error
}

// newlines is the output of a terminal that begins a line after each newline, as bubbletea expects
// of one that it cannot ask.
type newlines struct{ w io.Writer }

func (n newlines) Write(b []byte) (int, error) {
	_, err := n.w.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	return len(b), err
}

// start starts the program on a terminal. The profile of NO_COLOR is [colorprofile.ASCII].
func start(t *testing.T, width, height int, profile colorprofile.Profile, prepare ...func(*terminal)) *terminal {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m := newModel(ctx, nil, "/home/ada/src/project")
	m.home, m.id, m.title = "/home/ada", "sess_1", "Why the build fails"
	x := &terminal{t: t, emu: vt.NewSafeEmulator(width, height), m: m, done: make(chan error, 1)}
	x.p = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(x.emu), tea.WithOutput(newlines{x.emu}), tea.WithWindowSize(width, height),
		tea.WithColorProfile(profile), tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignalHandler())
	m.send = x.p.Send
	for _, f := range prepare {
		f(x)
	}
	go func() {
		_, err := x.p.Run()
		x.done <- err
	}()
	t.Cleanup(func() {
		cancel()
		<-x.done
		time.Sleep(time.Second) // the last timers end
		if err := x.emu.Close(); err != nil {
			t.Error(err)
		}
	})
	x.settle()
	return x
}

// settle lets the program draw all that it knows.
func (x *terminal) settle() {
	time.Sleep(spin / 2) // of the bubble's clock; no picture of the spinner is due
	synctest.Wait()
}

func (x *terminal) take(events ...Event) {
	x.p.Send(happened{"sess_1", events})
	x.settle()
}

// text returns the screen without styles.
func (x *terminal) text() string {
	lines := strings.Split(x.emu.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

var sgr = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// styled returns the screen with the numbers of its styles (1 bold, 2 faint, 31 red).
func (x *terminal) styled() string {
	out := sgr.ReplaceAllStringFunc(x.emu.Render(), func(s string) string {
		if n := sgr.FindStringSubmatch(s)[1]; n != "" {
			return "‹" + n + "›"
		}
		return "‹0›"
	})
	return strings.ReplaceAll(out, "\r", "") + "\n"
}

// golden compares a screen with the one of testdata/screens.
func golden(t *testing.T, name, got string) {
	t.Helper()
	at := filepath.Join("testdata", "screens", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the screen is\n%s\nwant that of %s (-update writes it)\n%s", got, at, want)
	}
}

const answer = "## Why it fails\n\nThe **linker** finds `main.init` *twice*; see [the issue](https://example.com/i/7).\n\n" +
	"1. Remove the copy in `old.go`.\n2. Run it again:\n\n```go\n// main starts it.\nfunc main() {\n\tfmt.Println(\"漢字 👍\")\n}\n```\n\n" +
	"| step | takes |\n|------|------:|\n| link | 1.2 s |\n| test | 40 s |\n\n> A quote, with a word that is "

// conversation is a turn with an answer, a change of a file, a command that fails, and a question.
func conversation() []Event {
	patch, _ := json.Marshal(map[string]string{"patch": "--- a/old.go\n+++ b/old.go\n@@ -1,3 +1,2 @@\n package main\n-func init() {}\n+// nothing\n"})
	return []Event{
		ev("message_added", "t1", `{"message":{"role":"user","parts":[{"type":"text","text":"Why does the build fail?"}]}}`),
		ev("turn_started", "t1", `{"model":"gpt-5-mini"}`),
		ev("tool_call_started", "t1", `{"tool_call":{"id":"c1","name":"shell","input":{"command":"go build ./... && echo \u001b]0;owned\u0007"}}}`),
		ev("tool_call_completed", "t1", `{"tool_result":{"id":"c1","ok":false,"brief":"exit status 1","parts":[{"type":"text","text":"main.init redeclared"}]}}`),
		ev("tool_call_started", "t1", `{"tool_call":{"id":"c2","name":"apply_patch","input":`+string(patch)+`}}`),
		ev("tool_call_completed", "t1", `{"tool_result":{"id":"c2","ok":true,"brief":"1 file changed"}}`),
		ev("model_output_completed", "t1", `{"text":"I removed it.","model":"gpt-5-mini","usage":{"total":12345}}`),
	}
}

func delta(text string) Event {
	raw, _ := json.Marshal(map[string]any{"text": text, "offset": 0})
	return ev("model_output_delta", "t1", string(raw))
}

var sizes = []struct{ width, height int }{{80, 24}, {200, 60}}

// USE-12: the screens of a conversation, at two sizes, with and without colours.
func TestScreens(t *testing.T) {
	for _, size := range sizes {
		for name, profile := range map[string]colorprofile.Profile{"colour": colorprofile.ANSI256, "no-color": colorprofile.ASCII} {
			t.Run(fmt.Sprintf("%dx%d %s", size.width, size.height, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x := start(t, size.width, size.height, profile)
					at := fmt.Sprintf("%dx%d-%s-", size.width, size.height, name)
					x.take(conversation()...)
					golden(t, at+"calls", x.styled())
					x.take(ev("approval_requested", "t1", `{"approval_id":"a1","tool_call_id":"c3","tool_name":"shell","input":{"command":"rm -rf build && go build ./..."}}`))
					time.Sleep(arming)
					x.settle()
					golden(t, at+"question", x.styled())
					x.take(ev("approval_granted", "t1", `{"approval_id":"a1","tool_name":"shell"}`), delta(answer))
					golden(t, at+"answer", x.styled())
				})
			})
		}
	}
}

// A resize in the middle of an answer draws everything again for the new width.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, 200, 60, colorprofile.ANSI256)
		x.take(append(conversation(), delta(answer))...)
		x.emu.Resize(80, 24)
		x.p.Send(tea.WindowSizeMsg{Width: 80, Height: 24})
		x.settle()
		small := x.text()
		y := start(t, 80, 24, colorprofile.ANSI256)
		y.take(append(conversation(), delta(answer))...)
		if want := y.text(); small != want {
			t.Errorf("after the resize the screen is\n%s\nwant\n%s", small, want)
		}
	})
}

// The plan of the agent is a list of its steps.
func TestPlanOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, 80, 24, colorprofile.ANSI256)
		x.take(ev("tool_call_started", "t1", `{"tool_call":{"id":"c1","name":"todo","input":{"steps":[{"text":"look at it","state":"done"},{"text":"change it\u202e","state":"doing"},{"text":"check"}]}}}`))
		golden(t, "80x24-steps", x.styled())
		x.take(ev("tool_call_started", "t1", `{"tool_call":{"id":"c2","name":"server__todo","input":{"steps":"x"}}}`))
		if got := x.text(); !strings.Contains(got, "server__todo  steps=x") {
			t.Errorf("the screen is\n%s\nwant the other call as its arguments", got)
		}
	})
}

// However low the window is, what is typed is on it, with the cursor.
func TestLowWindow(t *testing.T) {
	for height := 2; height <= 12; height++ {
		synctest.Test(t, func(t *testing.T) {
			x := start(t, 80, height, colorprofile.ANSI256)
			x.take(conversation()...)
			x.m.send(failed{errors.New(strings.Repeat("a long error ", 40))})
			x.keys("hello")
			lines := strings.Split(x.text(), "\n")
			if at := x.emu.CursorPosition().Y; at >= len(lines) || !strings.Contains(lines[at], "hello") {
				t.Errorf("in %d lines the screen is\n%s\nwant the input at the cursor, in line %d", height, x.text(), at)
			}
		})
	}
}

// While a command runs, it is shown with the last line that it has written.
func TestLiveOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, 80, 24, colorprofile.ANSI256)
		x.take(ev("turn_started", "t1", `{"model":"m"}`), ev("tool_call_started", "t1", `{"tool_call":{"id":"c1","name":"shell","input":{"command":"make test"}}}`),
			ev("tool_progress", "t1", `{"tool_call_id":"c1","progress":33,"message":"first\nsecond\n"}`))
		if got := x.text(); !strings.Contains(got, "shell  make test\n") || !strings.Contains(got, "└ second\n") || strings.Contains(got, "33") {
			t.Errorf("the screen is\n%s\nwant the command, and below it the line second", got)
		}
	})
}

// The title of the window has no more than a bounded, clean text.
func TestWindowTitle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var title string
		start(t, 80, 24, colorprofile.ANSI256, func(x *terminal) {
			x.m.title = "a\x1b]0b\x07\u202e" + strings.Repeat("x", 500)
			x.emu.SetCallbacks(vt.Callbacks{Title: func(s string) { title = s }})
		})
		if want := `yaya: a\u{1b}]0b\u{7}\u{202e}`; !strings.HasPrefix(title, want) || len(title) > 200 {
			t.Errorf("the title is %q, want %q and at most %d characters", title, want, maxTitle)
		}
	})
}
