package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// serves names the request that a plugin of a category answers with events.
var serves = map[plugin.Category]string{
	plugin.LLMProvider: event.LLMCallRequest.Name(),
	plugin.Strategy:    event.StrategyDecideRequest.Name(),
	plugin.Memory:      event.MemoryQueried.Name(),
}

// answers are the kinds with which it does; true is the last answer to a request.
var answers = map[plugin.Category]map[string]bool{
	plugin.LLMProvider: {event.LLMCallDelta.Name(): false, event.LLMRetried.Name(): false, event.LLMCallResponse.Name(): true, event.LLMCallError.Name(): true},
	plugin.Strategy:    {event.StrategyDecideResponse.Name(): true},
	plugin.Memory:      {event.MemoryAnswered.Name(): true},
}

// says are the other kinds that a plugin of a category emits, besides x.*.
var says = map[plugin.Category][]string{
	plugin.Adapter: {event.UserMessageReceived.Name(), event.UserInterrupt.Name()},
	plugin.Skill: {
		event.UserMessageReceived.Name(), event.UserInterrupt.Name(), event.LLMCallRequest.Name(), event.ToolCallRequest.Name(), event.MemoryQueried.Name(), event.MemoryWritten.Name(),
	},
}

// delivered remembers the requests that a process was given and has not answered.
type delivered struct {
	session map[string]string // by event
	order   []string
}

// gave notes a request that the process is about to get. When there are too many, the oldest
// can no longer be answered.
func (c *conn) gave(ev event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given.session == nil {
		c.given.session = map[string]string{}
	}
	c.given.session[ev.ID] = ev.SessionID
	c.given.order = append(c.given.order, ev.ID)
	for len(c.given.session) > maxDelivered {
		delete(c.given.session, c.given.order[0])
		c.given.order = c.given.order[1:]
	}
	if len(c.given.order) > 2*maxDelivered { // most of them have been answered
		c.given.order = slices.DeleteFunc(c.given.order, func(id string) bool { _, open := c.given.session[id]; return !open })
	}
}

// took forgets a request.
func (c *conn) took(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.given.session, id)
}

// unanswered returns the requests that the process leaves without an answer.
func (c *conn) unanswered() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for id := range c.given.session {
		out = append(out, id)
	}
	return out
}

func (c *conn) sessionOf(request string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.given.session[request]
	return s, ok
}

// emit publishes an event of the plugin.
func (p *Plugin) emit(cn *conn, c plugin.Context, e EmitParams) error {
	request, last, err := p.allowed(cn, e.Kind, e.SessionID, e.Payload)
	if err != nil {
		return err
	}
	if len(e.Payload) == 0 {
		e.Payload = json.RawMessage("{}")
	}
	if err := c.Emit(e.Kind, e.SessionID, e.Payload); err != nil {
		return err
	}
	if last {
		cn.took(request)
	}
	return nil
}

// allowed refuses an event that the plugin may not emit. It returns the request that the event
// answers, and whether that is then answered for good.
func (p *Plugin) allowed(cn *conn, kind, session string, payload json.RawMessage) (request string, last bool, err error) {
	d := &p.cfg.Description
	category := plugin.Category(d.Category)
	last, answer := answers[category][kind]
	if rest, bridge := strings.CutPrefix(session, event.BridgePrefix); bridge && !answer { // an answer goes where its request came from
		if name, _, _ := strings.Cut(rest, ":"); name != d.Name {
			return "", false, fmt.Errorf("the session %q belongs to another plugin", session)
		}
	}
	if event.IsExtension(kind) {
		name, _, _ := strings.Cut(strings.TrimPrefix(kind, "x."), ".")
		if name != d.Name && name != config.Namespace(d.Name) {
			return "", false, fmt.Errorf("%s is not an event of its own: those begin with x.%s", kind, d.Name)
		}
		return "", false, nil
	}
	switch {
	case answer:
	case slices.Contains(says[category], kind):
		return "", false, nil
	case kind == event.ApprovalAnswered.Name() && d.Permissions.Approvals:
		return "", false, nil
	case kind == event.ApprovalAnswered.Name() && category == plugin.Adapter:
		return "", false, fmt.Errorf("%s needs the permission approvals", kind)
	default:
		return "", false, fmt.Errorf("a plugin of category %s does not emit %s", category, kind)
	}
	var ref event.Request
	if err := json.Unmarshal(payload, &ref); err != nil {
		return "", false, fmt.Errorf("the payload of %s: %w", kind, err)
	}
	of, given := cn.sessionOf(ref.RequestID)
	switch {
	case !given:
		return "", false, fmt.Errorf("%s answers the request %.60q, which the plugin was not given, or has answered", kind, ref.RequestID)
	case of != session:
		return "", false, fmt.Errorf("%s answers a request of another session than %.200q", kind, session)
	}
	return ref.RequestID, last, nil
}
