package daemon

import (
	"errors"
	"sync"

	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// Bounds of the tasks that run at a time. A task that leads to another one, through a further yaya
// say, holds its place meanwhile, so they bound the depth, too.
const (
	maxTasks       = 32
	maxTasksOf     = 8 // of one principal
	maxTasksClient = 4 // of one session of a client
	maxLines       = 64
)

var errManyTasks = errors.New("too many tasks run already: wait until one has ended, or cancel one")

// task is a task that an agent works on for an MCP client.
type task struct {
	call  tool.Call   // by which the client gave it
	lines chan string // what the agent does, for the client; those that it does not take in time are dropped
}

// tasks are those that run. It is safe for concurrent use.
type tasks struct {
	mu     sync.Mutex
	all    int
	of     map[string]int   // by principal
	client map[string]int   // by the client's session
	live   map[string]*task // by the session of the agent
	// down has the profiles of clients; nil until there is one.
	down *downstream.Server
}

func newTasks() *tasks {
	return &tasks{of: map[string]int{}, client: map[string]int{}, live: map[string]*task{}}
}

// through names the server that has the profiles of clients, before the first task.
func (t *tasks) through(down *downstream.Server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.down = down
}

// sees returns which tools a caller may use through a profile.
func (t *tasks) sees(profile string, who tool.Caller) (func(*tool.Definition) bool, error) {
	t.mu.Lock()
	down := t.down
	t.mu.Unlock()
	return down.Sees(profile, who)
}

// take takes a place for a task, before anything is made for it. Nobody waits for one: what waits
// would hold the places of those that it waits for.
func (t *tasks) take(call tool.Call) (release func(), err error) {
	who, from := call.Caller.Principal, call.SessionID
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all >= maxTasks || t.of[who] >= maxTasksOf || t.client[from] >= maxTasksClient {
		return nil, errManyTasks
	}
	t.all++
	t.of[who]++
	t.client[from]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all--
		for key, m := range map[string]map[string]int{who: t.of, from: t.client} {
			if m[key]--; m[key] == 0 {
				delete(m, key)
			}
		}
	}, nil
}

// begin has a session work on a task until end is called; ok is false if it works on another one.
func (t *tasks) begin(session string, call tool.Call) (_ *task, end func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[session] != nil {
		return nil, nil, false
	}
	x := &task{call, make(chan string, maxLines)}
	t.live[session] = x
	return x, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.live, session)
	}, true
}

// at returns the task that a session or the session above it works on, nil if there is none.
func (t *tasks) at(session string) *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[event.Root(session)]
}

// say tells the client of a session's task what the agent does, if there is one. It does not wait.
func (t *tasks) say(session, line string) {
	if x := t.at(session); x != nil {
		select {
		case x.lines <- line:
		default:
		}
	}
}

// asker returns how to ask the MCP client that makes a call, or for whose task an agent makes it;
// nil if it cannot be asked. Questions of yaya's own, such as whether to trust a folder, are not
// for clients.
func (t *tasks) asker(call tool.Call) approval.Ask {
	if call.Native != nil {
		return mcpbridge.AskCaller(call)
	}
	if call.Name == tool.TrustQuestion || call.Name == tool.HostQuestion {
		return nil
	}
	if x := t.at(call.SessionID); x != nil {
		return mcpbridge.AskMaker(x.call, call)
	}
	return nil
}

// clientsOf returns what limits the agents of sessions that MCP clients have begun.
func clientsOf(c *core, s *sessions.Service) func(session string) (kernel.Client, bool) {
	return func(id string) (kernel.Client, bool) {
		of, err := s.ClientOf(id)
		if err != nil {
			c.st.at.log.Warn().Err(err).Str("session", id).Msg("it cannot be read who has begun a session: its agent gets no tools")
			return kernel.Client{}, true
		}
		if of == nil {
			return kernel.Client{}, false
		}
		who := tool.Caller{Principal: of.Principal}
		// A rule that restricts those with a scope counts, unless it is known that the client
		// has none such.
		has := func(string) bool { return true }
		if x := c.tasks.at(id); x != nil {
			who = x.call.Caller
			has = who.May
		}
		sees, err := c.tasks.sees(of.Profile, who)
		if err != nil {
			c.st.at.log.Warn().Err(err).Str("session", id).Str("profile", of.Profile).Msg("an agent gets no tools: the profile of the client that has begun its session cannot be used")
			sees = nil
		}
		return kernel.Client{Principal: of.Principal, Has: has, Sees: sees}, true
	}
}
