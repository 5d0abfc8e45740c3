package session_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

const childEnv = "YAYA_TEST_SESSION_CHILD"

// crashingChild works on a session until the n-th step that changes the disk
// kills it, and tells on standard output what it was promised.
func crashingChild(spec string) {
	n, dir, _ := strings.Cut(spec, ":")
	at, err := strconv.Atoi(n)
	if err == nil {
		err = crash(dir, at)
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func crash(dir string, at int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	m, err := session.OpenManager(session.Config{FS: journaltest.KillAt(journal.Root(root), at), Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	s, err := m.Open("s1", "")
	if err != nil {
		return err
	}
	msgs, err := s.Messages()
	if err != nil {
		return err
	}
	next := len(msgs) + 1
	say := func(id string) error {
		ev, err := bus.Publish(b.Kernel(), event.UserMessageReceived, id, event.UserMessage{Text: fmt.Sprint(next)})
		if err != nil {
			return err
		}
		s, err := m.Open(id, "")
		if err != nil {
			return err
		}
		if err := s.Sync(context.Background(), ev.Entry); err != nil {
			return err
		}
		fmt.Println("ack", next)
		next++
		return nil
	}
	for range 3 {
		if err := say("s1"); err != nil {
			return err
		}
	}
	fmt.Println("reset")
	if _, err := s.Reset(true); err != nil {
		return err
	}
	fmt.Println("was reset")
	next = 1
	for range 2 {
		if err := say("s1"); err != nil {
			return err
		}
	}
	return nil
}

// ST-01, ST-05, ST-15: kill -9 before every step of appending, syncing and
// resetting, and in the middle of writes. Acknowledged entries are on the tape or,
// after a reset, in the archive; nothing else is there; the session opens and
// works.
func TestKilledAtEveryStep(t *testing.T) {
	kills := 0
	for at := 1; at < 60; at++ {
		dir := t.TempDir()
		killed, acked, reset := runChild(t, dir, at)
		if !killed {
			break
		}
		kills++
		w := newWorld(t, dir)
		got := history(t, w.open("s1"))
		for i, line := range got {
			if line != fmt.Sprintf("user: %d", i+1) {
				t.Fatalf("step %d: message %d is %q", at, i+1, line)
			}
		}
		// Between the word that a reset begins and that it is done, the tape is the
		// old one or the new one.
		if len(got) < acked && (reset != "reset" || len(got) != 0) {
			t.Fatalf("step %d: %d messages are left of %d (%s)", at, len(got), acked, reset)
		}
		if reset == "was reset" || (reset == "reset" && len(got) == 0) {
			archived, err := w.fs.ReadDir("tapes/.archive")
			if err != nil || len(archived) != 1 {
				t.Fatalf("step %d: archive %v, %v", at, archived, err)
			}
		}
		w.say("s1", fmt.Sprint(len(got)+1))
		if _, f, err := session.Verify(w.fs); err != nil || len(f) != 0 {
			t.Fatalf("step %d: %+v, %v", at, f, err)
		}
		if _, err := w.open("s1").Reset(true); err != nil {
			t.Fatalf("step %d: the next reset: %v", at, err)
		}
		w.stop()
	}
	if kills < 20 {
		t.Errorf("only %d steps were tried", kills)
	}
}

// runChild returns whether the child was killed, the last message that was
// acknowledged on the tape in use, and how far a reset got.
func runChild(t *testing.T, dir string, at int) (killed bool, acked int, reset string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s", childEnv, at, dir))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(io.LimitReader(out, 1<<20))
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "reset":
			reset = line
		case line == "was reset":
			reset, acked = line, 0
		case strings.HasPrefix(line, "error"):
			t.Fatalf("step %d: %s", at, line)
		default:
			if _, err := fmt.Sscanf(line, "ack %d", &acked); err != nil {
				t.Fatalf("step %d: %s", at, line)
			}
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signal() == syscall.SIGKILL {
			return true, acked, reset
		}
	}
	if err != nil {
		t.Fatalf("step %d: %v", at, err)
	}
	return false, acked, reset
}
