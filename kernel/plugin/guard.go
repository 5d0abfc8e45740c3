package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Points at which a plugin can guard.
const (
	// GuardTool is before a tool is called, whoever calls it.
	GuardTool = "pre_tool"
	// GuardPrompt is before messages of the user reach the model.
	GuardPrompt = "prompt"
)

// GuardPoints returns all points at which a plugin can guard.
func GuardPoints() []string { return []string{GuardTool, GuardPrompt} }

// CheckGuards returns an error if guards are not points at which a plugin can guard, each
// named once.
func CheckGuards(guards []string) error {
	for i, point := range guards {
		switch {
		case !slices.Contains(GuardPoints(), point):
			return fmt.Errorf("guards: %.40q is none of %s", point, strings.Join(GuardPoints(), ", "))
		case slices.Contains(guards[:i], point):
			return fmt.Errorf("guards: %s is there twice", point)
		}
	}
	return nil
}

const (
	maxGuarded = 4 << 20 // bytes of arguments or of messages that a guard is asked about
	maxReason  = 500     // characters
	// defaultGuardTime is how long a guard has for an answer, without a setting.
	defaultGuardTime = 10 * time.Second
)

// ErrGuardTime is the cause of a context that ended because a guard has not answered within
// plugins.guard_timeout. A caller who has gone is another cause, and no failure of the guard.
var ErrGuardTime = errors.New("it has not answered in time")

// Question holds a call or messages that a guard is asked about.
type Question struct {
	Point   string
	Session string
	// Call and Def are the call and its tool, for [GuardTool]; secrets in the arguments are
	// concealed.
	Call tool.Call
	Def  tool.Definition
	// Prompt is the text of the messages, for [GuardPrompt].
	Prompt string
}

// Guard is implemented by plugins whose manifest names guards.
type Guard interface {
	// Decide answers a question. [tool.Allow] means no objection: it lifts nothing. An error
	// denies; the plugin counts it by [Speaker.Report] if it is a failure of its own. Decide
	// obeys ctx, and can run several times at once.
	Decide(ctx context.Context, q Question) (tool.Verdict, error)
}

// Denial is a denial by a guard, for the audit.
type Denial struct {
	Plugin, Point, Session, Tool, Principal, Reason string
}

// ErrDenied is returned by [Registry.Admit] when a guard denies.
var ErrDenied = errors.New("denied")

// Wants implements [tool.Selective].
func (r *Registry) Wants(tool.Origin) bool { return len(r.at(GuardTool)) > 0 }

// PreToolCall implements [tool.Hook]: it asks the plugins that guard calls of tools.
func (r *Registry) PreToolCall(ctx context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	names := r.at(GuardTool)
	if len(names) == 0 || def.IsQuestion() {
		return tool.Verdict{}, nil
	}
	q := Question{Point: GuardTool, Session: call.SessionID, Call: call, Def: def}
	q.Call.Args = r.cfg.Secrets.ConcealJSON(slices.Clone(call.Args))
	d := Denial{Point: GuardTool, Session: call.SessionID, Tool: def.Identity.String(), Principal: call.Caller.Principal}
	return r.consult(ctx, names, q, d), nil
}

// Admit asks the plugins that guard messages of the user, and those with which agents prompt
// sub-agents. Its error wraps [ErrDenied].
func (r *Registry) Admit(ctx context.Context, session, prompt string) error {
	names := r.at(GuardPrompt)
	if len(names) == 0 || prompt == "" {
		return nil
	}
	q := Question{Point: GuardPrompt, Session: session, Prompt: r.cfg.Secrets.ConcealString(prompt)}
	v := r.consult(ctx, names, q, Denial{Point: GuardPrompt, Session: session})
	if v.Decision == tool.Ask || v.Decision == tool.Deny { // nobody is asked about a message
		return fmt.Errorf("%w: %s", ErrDenied, v.Reason)
	}
	return nil
}

// consult asks guards, all at once, and returns the strictest verdict; among equals, that of
// the first.
func (r *Registry) consult(ctx context.Context, names []string, q Question, d Denial) tool.Verdict {
	verdicts := make([]tool.Verdict, len(names))
	if len(names) == 1 {
		verdicts[0] = r.decide(ctx, names[0], q)
	} else {
		var wg sync.WaitGroup
		for i, name := range names {
			wg.Go(func() { verdicts[i] = r.decide(ctx, name, q) })
		}
		wg.Wait()
	}
	out := tool.Verdict{}
	for i, v := range verdicts {
		if v.Decision > out.Decision {
			out, d.Plugin = v, names[i]
		}
	}
	refused := out.Decision == tool.Deny || q.Point == GuardPrompt && out.Decision == tool.Ask
	if refused && ctx.Err() == nil { // otherwise nobody decided
		d.Reason = out.Reason
		r.denied(d)
	}
	return out
}

func (r *Registry) denied(d Denial) {
	r.cfg.Log.Warn().Str("plugin", d.Plugin).Str("session", d.Session).Str("tool", d.Tool).Msg("a guard denies: " + d.Reason)
	if r.cfg.Denied == nil {
		return
	}
	if err := r.cfg.Denied(d); err != nil {
		r.cfg.Log.Error().Err(err).Str("plugin", d.Plugin).Msg("the denial of a guard is not in the audit")
	}
}

// guarded says what a point is about.
var guarded = map[string]string{GuardTool: "calls of tools", GuardPrompt: "messages to the model"}

// decide asks one guard. Everything but an answer denies.
func (r *Registry) decide(ctx context.Context, name string, q Question) tool.Verdict {
	deny := func(format string, args ...any) tool.Verdict {
		text := fmt.Sprintf("plugin %s guards %s, and ", name, guarded[q.Point]) + fmt.Sprintf(format, args...)
		return tool.Verdict{Decision: tool.Deny, Reason: r.reason(text)}
	}
	g, c, why, off := r.guardOf(name, q.Point)
	switch {
	case off:
		return tool.Verdict{}
	case g == nil:
		return deny("%s", why)
	case len(q.Call.Args) > maxGuarded || len(q.Prompt) > maxGuarded:
		return deny("is not asked about more than %d MiB", maxGuarded>>20)
	}
	limit := cmp.Or(r.cfg.Config.Duration("plugins.guard_timeout"), defaultGuardTime)
	asked, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v", ErrGuardTime, limit))
	defer cancel()
	v, err := answerOf(asked, g, q)
	if err != nil && ctx.Err() == nil { // it may have been replaced meanwhile
		if now, nc, _, off := r.guardOf(name, q.Point); off {
			return tool.Verdict{}
		} else if now != nil && now != g {
			c = nc
			v, err = answerOf(asked, now, q)
		}
	}
	if err != nil && ctx.Err() != nil {
		return deny("the caller has gone before it answered")
	}
	if err != nil {
		c.log.Warn().Err(err).Str("session", q.Session).Msg("a guard failed, and denies")
		return deny("it has failed: %v", err)
	}
	said := "plugin " + name
	if v.Reason != "" {
		said += ": " + v.Reason
	}
	switch v.Decision {
	case tool.Abstain, tool.Allow: // no objection: rules and people decide
		return tool.Verdict{}
	case tool.Ask, tool.Deny:
		return tool.Verdict{Decision: v.Decision, Reason: r.reason(said)}
	}
	return deny("its answer %d is not a decision", v.Decision)
}

// reason returns a text that a person and a model can read.
func (r *Registry) reason(text string) string {
	return r.cfg.Secrets.ConcealString(cut.Line(strings.ToValidUTF8(text, "�"), maxReason))
}

// answerOf calls a guard. Its panic is an error.
func answerOf(ctx context.Context, g Guard, q Question) (v tool.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return g.Decide(ctx, q)
}

// guardOf returns the guard of a point that a plugin is now. Without one, why says so, unless the
// plugin is switched off, or the one that is loaded does not guard the point.
func (r *Registry) guardOf(name, point string) (g Guard, c *pluginContext, why string, off bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.byName[name]
	status, failure := Unloaded, ""
	if l != nil {
		status, failure = l.status, l.failure
	}
	switch {
	case status == Loaded && !slices.Contains(l.manifest.Guards, point):
		return nil, nil, "", true
	case status == Loaded:
		if g, ok := l.plugin.(Guard); ok {
			return g, l.ctx, "", false
		}
		return nil, nil, "it cannot be asked", false
	case l != nil && l.off, !r.enabled(name):
		return nil, nil, "", true
	case status == Failed:
		return nil, nil, fmt.Sprintf("it is not running: %s; yaya plugin reload %s starts it again", failure, name), false
	}
	return nil, nil, "it is being started", false
}
