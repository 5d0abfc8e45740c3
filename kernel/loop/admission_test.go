package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

var (
	seeds = flag.Int("admission-seeds", 100, "how many histories TestAdmission tries")
	flaky = flag.Int("flaky-seeds", 5, "how many histories TestAdmissionOnAFlakyDisk tries")
	seed  = flag.Uint64("admission-seed", 0, "the one history that TestAdmission tries; 0: all")
)

// chance is a random source for several goroutines.
type chance struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (c *chance) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.IntN(n)
}

// process is one life of a loop with its sessions, on a disk that may fail for good.
type process struct {
	bus  *bus.Bus
	m    *session.Manager
	l    *loop.Loop
	dead atomic.Bool
	died chan struct{}
}

var errDead = errors.New("the process is dead")

// begin starts a process. With a step that is not 0, the process dies before that change of
// the disk, or in the middle of it.
func (h *history) begin(step int) *process {
	p := &process{died: make(chan struct{})}
	clear(h.turns)
	disk := &journaltest.Faults{FS: h.disk}
	ill, well, with := h.spell()
	disk.Before = func(s journaltest.Step) error {
		for range h.chance.n(4) {
			runtime.Gosched()
		}
		if s.N == step {
			p.dead.Store(true)
			close(p.died)
		}
		if p.dead.Load() {
			return errDead
		}
		if h.fault != nil {
			return h.fault(s)
		}
		if ill <= s.N && s.N < well && !h.mended.Load() {
			return with
		}
		return nil
	}
	disk.Partial = func(s journaltest.Step) int {
		if s.N != step && (s.N < ill || well <= s.N) {
			return 0
		}
		return h.chance.n(s.Len + 1)
	}
	var err error
	if p.m, err = session.OpenManager(session.Config{FS: disk, Workspace: "/ws", Owner: h.owner}); err != nil && !p.dead.Load() {
		h.t.Fatalf("OpenManager = %v, want no error", err)
	}
	if p.m == nil {
		return p
	}
	p.bus = bus.New(bus.Config{Recorder: p.m})
	p.m.Bind(p.bus)
	h.model(p)
	if p.l, err = loop.New(loop.Config{Bus: p.bus, Tools: new(tool.Registry), Sessions: p.m}); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// spell chooses the steps at which the disk of a process fails, before it works again.
func (h *history) spell() (ill, well int, with error) {
	if !h.flaky {
		return 0, 0, nil
	}
	ill = 2 + h.chance.n(100) // a start that fails says so
	return ill, ill + 1 + h.chance.n(12), []error{syscall.EIO, syscall.ENOSPC}[h.chance.n(2)]
}

// model answers strategy and model calls of a process.
func (h *history) model(p *process) {
	subscribe := func(kind string, f bus.Handler) {
		if _, err := p.bus.Subscribe(bus.SubscribeOptions{Name: kind}, []string{kind}, f); err != nil {
			h.t.Fatal(err)
		}
	}
	subscribe(event.StrategyDecideRequest.Name(), func(_ context.Context, ev event.Event) error {
		st := ev.Payload.(event.DecideRequest).State
		h.mu.Lock()
		if !h.turns[st.TurnID] {
			h.turns[st.TurnID] = true
			h.worked[st.Messages[len(st.Messages)-1].Content]++
		}
		h.mu.Unlock()
		d := event.DecideResponse{Next: event.NextLLM, Request: event.Request{RequestID: ev.ID}}
		if st.Answered {
			d.Next = event.NextDone
		}
		_, err := bus.Publish(p.bus.Kernel(), event.StrategyDecideResponse, ev.SessionID, d)
		return err
	})
	subscribe(event.LLMCallRequest.Name(), func(_ context.Context, ev event.Event) error {
		time.Sleep(h.slow + time.Duration(h.chance.n(3))*time.Millisecond)
		_, err := bus.Publish(p.bus.Kernel(), event.LLMCallResponse, ev.SessionID, event.LLMResponse{Text: "done", Request: event.Request{RequestID: ev.ID}})
		return err
	})
}

// end ends a process, in the order in which the kernel ends.
func (h *history) end(p *process, clients *sync.WaitGroup) {
	if p.m == nil {
		clients.Wait()
		return
	}
	err := p.l.Close(context.Background())
	clients.Wait()
	err = errors.Join(err, p.m.Close(context.Background()), p.bus.Close(context.Background()))
	if err != nil && !p.dead.Load() && !h.flaky { // whose disk may fail just now
		h.t.Errorf("end: %v", err)
	}
}

// sent is a prompt of a client with what became of it. Times are ticks of the history.
type sent struct {
	loop.Prompt
	from, to int // when it was submitted first, and when it was acknowledged; 0: it was not
	refused  bool
	again    bool // it was sent again after an error of the disk
}

// history holds the actions of several clients while processes come and go.
type history struct {
	t      *testing.T
	chance *chance
	disk   *journaltest.Disk
	owner  session.Owner
	flaky  bool                         // the disk of each process fails for a while
	mended atomic.Bool                  // it does not fail any longer
	slow   time.Duration                // how long the model takes at least
	fault  func(journaltest.Step) error // of the disk; optional

	mu     sync.Mutex
	tick   int
	turns  map[string]bool // that have begun in this process
	worked map[string]int  // how many turns began with a text as the last message
}

func (h *history) now() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tick++
	return h.tick
}

// client submits its prompts one after the other, each until it is acknowledged or refused,
// and goes on where it was when the process has changed.
func (h *history) client(p *process, all []*sent) {
	for _, m := range all {
		if m.to > 0 || m.refused {
			continue
		}
		time.Sleep(time.Duration(h.chance.n(4)) * time.Millisecond)
		if m.from == 0 {
			m.from = h.now()
		}
		_, err := p.l.Submit(context.Background(), m.Prompt)
		for h.flaky && err != nil && !h.final(p, err) { // clients send again what was refused, under the same id
			time.Sleep(time.Duration(1+h.chance.n(1000)) * time.Millisecond)
			_, err = p.l.Submit(context.Background(), m.Prompt)
			m.again = true
		}
		switch {
		case p.dead.Load(), errors.Is(err, loop.ErrShutdown), errors.Is(err, bus.ErrClosed):
			return // whatever the answer was, nobody got it
		case errors.Is(err, loop.ErrBusy):
			m.refused = true
		case err != nil:
			h.t.Errorf("submit %s: %v", m.ID, err)
			return
		default:
			m.to = h.now()
		}
	}
}

// final reports whether a prompt need not be sent to this process again.
func (h *history) final(p *process, err error) bool {
	return p.dead.Load() || errors.Is(err, loop.ErrShutdown) || errors.Is(err, bus.ErrClosed) || errors.Is(err, loop.ErrBusy)
}

// live runs a process with its clients until it dies or ends.
func (h *history) live(clients [][]*sent, last bool) {
	step := 0
	if !last && h.chance.n(4) > 0 {
		step = 1 + h.chance.n(120)
	}
	p := h.begin(step)
	var work sync.WaitGroup
	if p.m != nil {
		work.Go(func() { // as a start does it: clients are there already
			if err := errors.Join(p.l.Resume(context.Background()), p.l.Repair(context.Background())); err != nil && !p.dead.Load() && !errors.Is(err, bus.ErrClosed) {
				h.t.Errorf("resume: %v", err)
			}
		})
		for _, all := range clients {
			work.Go(func() { h.client(p, all) })
		}
		for range h.chance.n(3) {
			work.Go(func() {
				time.Sleep(time.Duration(h.chance.n(20)) * time.Millisecond)
				p.l.Cancel("s1")
			})
		}
	}
	if last {
		work.Wait()
		h.mended.Store(true)
		time.Sleep(time.Hour) // all turns have ended
		h.check(p, slices.Concat(clients...))
	} else {
		select {
		case <-p.died:
		case <-time.After(time.Duration(h.chance.n(30)) * time.Millisecond):
		}
	}
	h.end(p, &work)
	if p.dead.Load() && h.chance.n(2) == 0 {
		h.disk = h.disk.PowerLost(h.chance.r)
	} else {
		h.disk = h.disk.Killed()
	}
}

// told holds the messages and turns of a tape.
type told struct {
	at     map[string]int64  // the entry of each message, by its text
	twice  []string          // texts that are there more than once
	turns  map[string]string // the turn that a message was to start, by its text
	starts map[string]int    // of turns
	ends   map[string]int
}

func read(t *testing.T, m *session.Manager, id string) told {
	s, err := m.Open(id, "")
	if err != nil {
		t.Fatal(err)
	}
	out := told{map[string]int64{}, nil, map[string]string{}, map[string]int{}, map[string]int{}}
	if err := s.Entries(0, func(e session.Entry) error {
		var p struct {
			Role, Content, Name string
			Data                struct {
				TurnID string `json:"turn_id"`
			}
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return err
		}
		switch {
		case e.Kind == session.KindMessage && p.Role == "user":
			if out.at[p.Content] > 0 {
				out.twice = append(out.twice, p.Content)
			}
			out.at[p.Content] = e.ID
			if e.Meta.Starts {
				out.turns[p.Content] = e.Meta.Turn
			}
		case p.Name == event.TurnWasStarted.Name():
			out.starts[p.Data.TurnID]++
		case p.Name == event.TurnWasCompleted.Name(), p.Name == event.TurnHasFailed.Name(), p.Name == event.TurnWasCancelled.Name():
			out.ends[p.Data.TurnID]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// check compares the tapes with the answers that clients got.
func (h *history) check(p *process, all []*sent) {
	for _, id := range []string{"s1", "s2"} {
		got := read(h.t, p.m, id)
		if len(got.twice) > 0 {
			h.t.Errorf("%s: more than once on the tape: %v", id, got.twice)
		}
		for text, turn := range got.turns {
			if h.flaky && got.starts[turn] == 0 && got.ends[turn] == 1 {
				continue // it was interrupted before the disk let it begin
			}
			if got.starts[turn] != 1 || got.ends[turn] != 1 {
				h.t.Errorf("%s: the turn of %s was started %d times and ended %d times, want once", id, text, got.starts[turn], got.ends[turn])
			}
		}
		if state, _ := p.l.State(id); state != loop.Idle {
			h.t.Errorf("%s is %s, want idle", id, state)
		}
		s, err := p.m.Open(id, "")
		if err != nil {
			h.t.Fatal(err)
		}
		if sn, err := s.Snapshot(); err != nil || len(sn.Queue) > 0 || sn.Owed {
			h.t.Errorf("%s: got a queue of %d, owed %v, %v; want nothing waiting", id, len(sn.Queue), sn.Owed, err)
		}
		h.order(got, slices.DeleteFunc(slices.Clone(all), func(m *sent) bool { return m.SessionID != id }))
	}
	if left := h.disk.Names("tapes/.queued"); len(left) > 0 && !h.flaky { // of a queue that was refused: the next prompt or start removes it
		h.t.Errorf("markers of queues are left: %v", left)
	}
}

func (h *history) order(got told, all []*sent) {
	waits := func(m *sent) bool { return m.Delivery == loop.DeliverQueue || m.Delivery == loop.DeliverReject }
	for _, m := range all {
		if (got.at[m.Text] > 0) != (m.to > 0) {
			h.t.Errorf("%s: acknowledged at %d, refused %v, on the tape as entry %d", m.ID, m.to, m.refused, got.at[m.Text])
		}
		if h.worked[m.Text] > 1 && !m.again { // a turn may have seen it before the disk lost it
			h.t.Errorf("%s: %d turns began with it", m.ID, h.worked[m.Text])
		}
		for _, after := range all {
			if waits(m) && waits(after) && m.to > 0 && m.to < after.from && after.to > 0 && got.at[m.Text] > got.at[after.Text] {
				h.t.Errorf("%s (entry %d) was overtaken by %s (entry %d)", m.ID, got.at[m.Text], after.ID, got.at[after.Text])
			}
		}
	}
}

// REL-1, REL-2, OP-1, OP-2: any interleaving of submit, end of turn, cancel, restart and
// death, at any change of the disk and with any loss of what had not reached it, keeps the
// order in which prompts were acknowledged, and starts each once.
func TestAdmission(t *testing.T) { admission(t, false, *seeds) }

// OP-113: the same holds when the disk fails for some steps and then works again.
func TestAdmissionOnAFlakyDisk(t *testing.T) { admission(t, true, *flaky) }

func admission(t *testing.T, flaky bool, histories int) {
	try := func(n uint64) {
		r := rand.New(rand.NewPCG(n, 18)) //nolint:gosec // a test that can be repeated
		h := &history{t: t, flaky: flaky, chance: &chance{r: r}, disk: journaltest.NewDisk(), turns: map[string]bool{}, worked: map[string]int{}}
		deliveries := []loop.Delivery{loop.DeliverQueue, loop.DeliverQueue, loop.DeliverQueue, loop.DeliverQueue, loop.DeliverReject, loop.DeliverSteer, loop.DeliverInterrupt}
		var clients [][]*sent
		for c := range 2 + r.IntN(3) {
			var all []*sent
			for i := range 2 + r.IntN(6) {
				id := fmt.Sprintf("c%d-%d", c, i)
				all = append(all, &sent{Prompt: loop.Prompt{SessionID: "s1", ID: id, Text: id, Delivery: deliveries[r.IntN(len(deliveries))]}})
				if r.IntN(5) == 0 {
					all[i].SessionID = "s2"
				}
			}
			clients = append(clients, all)
		}
		for range r.IntN(4) {
			h.live(clients, false)
		}
		h.live(clients, true)
	}
	from, to := uint64(1), uint64(histories)
	if *seed > 0 {
		from, to = *seed, *seed
	}
	for n := from; n <= to; n++ {
		synctest.Test(t, func(*testing.T) { try(n) })
		if t.Failed() {
			t.Fatalf("history %d: run it alone with -admission-seed %d", n, n)
		}
	}
}

// OP-4: a queued prompt that the disk refuses to write down starts when the disk is well.
func TestQueueWaitsForTheDisk(t *testing.T) {
	for name, op := range map[string]string{"full": "write", "failing": "sync"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &history{t: t, chance: &chance{r: rand.New(rand.NewPCG(1, 1))}, disk: journaltest.NewDisk(), turns: map[string]bool{}, worked: map[string]int{}} //nolint:gosec // a test that can be repeated
				p := h.begin(0)
				var broken atomic.Bool
				h.fault = func(s journaltest.Step) error {
					if broken.Load() && s.Op == op {
						return syscall.ENOSPC
					}
					return nil
				}
				submit := func(text string) error {
					_, err := p.l.Submit(t.Context(), loop.Prompt{SessionID: "s1", ID: text, Text: text, Delivery: loop.DeliverQueue})
					return err
				}
				h.slow = time.Second // the first turn runs while the second prompt is queued
				for _, text := range []string{"first", "second"} {
					if err := submit(text); err != nil {
						t.Fatalf("submit %s: %v", text, err)
					}
				}
				broken.Store(true)
				time.Sleep(time.Hour)
				if state, _ := p.l.State("s1"); state != loop.Idle || h.worked["second"] > 0 {
					t.Errorf("the session is %s, and %d turns began with the second prompt; want idle and none", state, h.worked["second"])
				}
				if err := submit("third"); err == nil {
					t.Error("a prompt was acknowledged that is not on the disk")
				}
				broken.Store(false)
				time.Sleep(time.Hour)
				got := read(t, p.m, "s1")
				if h.worked["second"] != 1 || got.at["second"] == 0 || got.at["third"] > 0 {
					t.Errorf("%d turns began with the second prompt, which is entry %d, and the third is entry %d; want one turn and no third", h.worked["second"], got.at["second"], got.at["third"])
				}
				h.end(p, new(sync.WaitGroup))
			})
		})
	}
}

// REL-1: the model sees a message that joins its turn once the disk has it. It would act on it
// twice otherwise: a client whose prompt was not acknowledged sends it again.
func TestSteeredPromptReachesTheDiskFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{t: t, chance: &chance{r: rand.New(rand.NewPCG(1, 1))}, disk: journaltest.NewDisk(), turns: map[string]bool{}, worked: map[string]int{}, slow: time.Second} //nolint:gosec // a test that can be repeated
		p := h.begin(0)
		var slow, synced atomic.Bool
		h.fault = func(s journaltest.Step) error {
			if slow.Load() && s.Op == "sync" {
				time.Sleep(10 * time.Second)
				synced.Store(true)
			}
			return nil
		}
		var seen atomic.Int32
		if _, err := p.bus.Subscribe(bus.SubscribeOptions{Name: "seen"}, []string{event.StrategyDecideRequest.Name()}, func(_ context.Context, ev event.Event) error {
			for _, m := range ev.Payload.(event.DecideRequest).State.Messages {
				if m.Content == "aside" {
					seen.Add(1)
					if !synced.Load() {
						t.Error("the turn went on with a message that was not on the disk")
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, prompt := range []loop.Prompt{{ID: "first"}, {ID: "aside", Delivery: loop.DeliverSteer}} {
			prompt.SessionID, prompt.Text = "s1", prompt.ID
			if _, err := p.l.Submit(t.Context(), prompt); err != nil {
				t.Fatalf("submit %s: %v", prompt.ID, err)
			}
			time.Sleep(h.slow / 2) // the model has the first one
			slow.Store(true)
		}
		time.Sleep(time.Hour)
		if state, _ := p.l.State("s1"); state != loop.Idle || seen.Load() == 0 || h.worked["aside"] > 0 {
			t.Errorf("the session is %s, the message was seen %d times and began %d turns; want idle, seen in its turn, and none", state, seen.Load(), h.worked["aside"])
		}
		h.end(p, new(sync.WaitGroup))
	})
}
