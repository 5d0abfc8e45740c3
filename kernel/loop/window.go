package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// DefaultWindow is the size of a model's window, in tokens, that nobody has named.
const DefaultWindow = 128_000

const (
	// overflowTries is how often a request that the service refuses as too long is made
	// shorter: once by a summary, and once by cutting the longest results.
	overflowTries = 2
	// imageTokens is about what a picture costs.
	imageTokens = 1000
	// maxModels bounds the models about which something is known.
	maxModels = 256
	// maxSummary bounds a summary, in tokens.
	maxSummary = 4000
)

// gauge holds measurements of one model, taken from its calls.
type gauge struct {
	ratio  float64 // of the tokens that the service counts to those that we estimate
	cached float64 // share of the tokens of the last request that the service had in its cache
	window int     // that an error has named, 0 if none has
}

// gauges are the measurements of models, by provider and model.
type gauges struct {
	mu sync.Mutex
	of map[[2]string]gauge
}

func (g *gauges) get(req event.LLMRequest) gauge {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.of[[2]string{req.Provider, req.Model}]
	out.ratio = cmp.Or(out.ratio, 1)
	return out
}

func (g *gauges) update(req event.LLMRequest, change func(*gauge)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := [2]string{req.Provider, req.Model}
	now, known := g.of[key]
	if !known && len(g.of) >= maxModels {
		clear(g.of) // it is learned again
	}
	if g.of == nil {
		g.of = map[[2]string]gauge{}
	}
	now.ratio = cmp.Or(now.ratio, 1)
	change(&now)
	now.ratio = min(max(now.ratio, 0.5), 4)
	g.of[key] = now
}

// NamedWindow returns the size of a model's window, in tokens, that an error of the provider has named
// since the loop began, 0 if none has. It is safe for concurrent use.
func (l *Loop) NamedWindow(provider, model string) int {
	return l.gauges.get(event.LLMRequest{Provider: provider, Model: model}).window
}

// load is how full a request makes the window, in tokens as the service counts them.
type load struct {
	window, limit int     // limit: from which on the history is shortened
	need          int     // of the whole request
	fixed         int     // of its system prompt and tools
	fresh         int     // of results that the model has not seen
	ratio         float64 // see gauge
}

// measure estimates a request.
func (t *turn) measure(req event.LLMRequest) load {
	g := t.l.gauges.get(req)
	w := load{ratio: g.ratio}
	known := t.l.cfg.Model(req.Provider, req.Model)
	w.window = cmp.Or(known.Window, g.window, known.Likely, DefaultWindow)
	if t.narrow > 0 {
		w.window = min(w.window, t.narrow)
	}
	fixed, all := estimate(req, t.systems)
	w.fixed, w.need = int(float64(fixed)*g.ratio), int(float64(all)*g.ratio)
	fresh := len(req.Messages)
	for fresh > 0 && req.Messages[fresh-1].Role == "tool" {
		fresh--
	}
	_, unseen := estimate(event.LLMRequest{Messages: req.Messages[fresh:]}, 0)
	w.fresh = int(float64(unseen) * g.ratio)
	w.limit = w.window * 4 / 5
	var p struct {
		Max        int `json:"max_tokens"`
		Completion int `json:"max_completion_tokens"`
	}
	_ = json.Unmarshal(req.Params, &p) // the provider says what is wrong with them
	// Many services count the answer, too.
	if answer := cmp.Or(max(p.Max, p.Completion), known.Answer); answer > 0 && answer < w.window/2 {
		w.limit = min(w.limit, w.window-answer)
	}
	if o, _ := t.l.cfg.Compaction(); o.Threshold > 0 {
		w.limit = min(w.limit, o.Threshold)
	}
	return w
}

// window returns the window of the session's model, for strategies that cut what they tell.
func (t *turn) window() int {
	id, model, err := t.target(event.DecideResponse{})
	if err != nil {
		return DefaultWindow
	}
	return t.measure(event.LLMRequest{Provider: id, Model: model}).window
}

// estimate counts the tokens of a request, and those of its first messages, which are not
// history, and of its tools: four bytes are a token.
func estimate(req event.LLMRequest, first int) (fixed, all int) {
	for i, m := range req.Messages {
		n := len(m.Content) + 16 + len(m.Images)*imageTokens*4
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Args) + 16
		}
		for _, r := range m.Reasoning {
			n += len(r.Text)
		}
		if all += n; i < first {
			fixed += n
		}
	}
	for _, f := range req.Tools {
		n := len(f.Name) + len(f.Description) + len(f.Parameters) + 16
		fixed, all = fixed+n, all+n
	}
	return fixed / 4, all / 4
}

// weighed learns from what the service has counted for a request.
func (t *turn) weighed(req event.LLMRequest, u event.Usage) {
	_, all := estimate(req, 0)
	if u.Input <= 0 || all < 250 { // small requests are all overhead
		return
	}
	t.l.gauges.update(req, func(g *gauge) {
		g.ratio, g.cached = float64(u.Input)/float64(all), min(float64(u.InputCacheRead)/float64(u.Input), 1)
	})
}

// guessed is about what a call has taken that has ended on its way: services count at the end.
func (t *turn) guessed(req event.LLMRequest, sent int) event.Usage {
	_, all := estimate(req, 0)
	g := t.l.gauges.get(req)
	in := float64(all) * g.ratio
	cached := in * g.cached
	return llm.NewUsage(int(in-cached), int(cached), 0, sent/4)
}

// refused learns from the refusal of a request that is too long. window is what the service
// named, 0 if nothing: then the turn takes the window to be a little smaller than the request.
func (t *turn) refused(req event.LLMRequest, window int) {
	_, all := estimate(req, 0)
	if window == 0 {
		t.narrow = max(t.measure(req).need*9/10, 1)
		return
	}
	t.narrow = window
	t.l.gauges.update(req, func(g *gauge) {
		g.window = window
		g.ratio = max(g.ratio, float64(window)/float64(max(all, 1)))
	})
}

// relieve shortens the history before a request that nears the window. If it cannot, the
// request goes out as it is: the service has the last word. It reports whether the history
// has changed.
func (t *turn) relieve(req event.LLMRequest) bool {
	w := t.measure(req)
	if w.need < max(w.limit, t.stuck) {
		return false
	}
	return t.makeRoom(req, false)
}

// makeRoom shortens the history: results that alone take much of the window, then older
// results, then the older part by a summary. hard cuts all results as far as it takes. It
// reports whether the history has changed; the tape keeps everything.
func (t *turn) makeRoom(req event.LLMRequest, hard bool) (changed bool) {
	if !t.compacts() || t.ctx.Err() != nil {
		return false
	}
	w := t.measure(req)
	goal := w.limit * 3 / 4 // below the limit, or every step would have to do it again
	if hard {
		return t.shorten(w, w.need-goal, true)
	}
	if over := w.fresh - w.window/4; over > 0 && t.shorten(w, over, true) {
		if changed, w = true, t.again(req); w.need < w.limit {
			return true
		}
	}
	if t.shorten(w, w.need-goal, false) {
		return true
	}
	changed = t.sumUpHistory(req, w, goal) || changed
	if w = t.again(req); w.need < w.window*19/20 {
		return changed
	}
	return t.shorten(w, w.need-goal, true) || changed
}

// sumUpHistory replaces the older part of the history by a summary.
func (t *turn) sumUpHistory(req event.LLMRequest, w load, goal int) bool {
	o, _ := t.l.cfg.Compaction()
	o.Threshold, o.Target = 0, cmp.Or(o.Target, max(int(float64(goal-w.fixed)/w.ratio), 256))
	o.Summary = min(o.Target/2, maxSummary)
	done, err := t.session.Compact(t.ctx, o, t.summariser(req, ""))
	if err != nil && t.ctx.Err() == nil {
		t.l.cfg.Log.Warn().Err(err).Str("session", t.thread.id).Msg("the history could not be summarized")
	}
	t.stuck = 0
	if !done { // not at every step
		t.stuck = w.need + w.window/20
	}
	return done
}

// again measures a request with the present history.
func (t *turn) again(req event.LLMRequest) load {
	history, err := t.history()
	if err == nil { // else the next request reports it
		req.Messages = append(req.Messages[:t.systems:t.systems], t.forModel(history, t.l.cfg.Model(req.Provider, req.Model))...)
	}
	return t.measure(req)
}

// shorten shortens results, to free so many tokens; see [session.Session.Shorten].
func (t *turn) shorten(w load, free int, all bool) bool {
	done, err := t.session.Shorten(int(float64(free)/w.ratio), all)
	if err != nil {
		t.l.cfg.Log.Warn().Err(err).Str("session", t.thread.id).Msg("results could not be shortened")
	}
	return done
}

// tooLong is the failure of a request that the service refuses as too long, whatever is done.
func (t *turn) tooLong(req event.LLMRequest, said string) error {
	w := t.measure(req)
	id := cmp.Or(req.Provider, "<id>")
	advice := fmt.Sprintf("start a new session or choose a model with a larger window; if the window is larger, set providers.%s.context_window", id)
	if on := t.compacts(); !on {
		return failed("context_overflow", "the request of about %d tokens is longer than the model's window, and compaction.enabled is off: switch it on, or %s: %s", w.need, advice, said)
	}
	if w.fixed >= w.window {
		return failed("context_overflow", "the system prompt and the tools alone take about %d tokens, and the model's window has about %d: switch servers or tools off, or %s: %s", w.fixed, w.window, advice, said)
	}
	for _, m := range req.Messages[t.systems:] {
		_, n := estimate(event.LLMRequest{Messages: []event.Message{m}}, 0)
		if n := int(float64(n) * w.ratio); m.Role == "user" && n+w.fixed >= w.window {
			return failed("context_overflow", "one message alone takes about %d tokens, and the model's window has about %d: send it in parts or as a file that the agent reads, or %s: %s", n, w.window, advice, said)
		}
	}
	return failed("context_overflow", "the request of about %d tokens does not fit the model's window of about %d, although the history was shortened: %s: %s", w.need, w.window, advice, said)
}

func (t *turn) compacts() bool {
	_, on := t.l.cfg.Compaction()
	return on && t.session != nil
}
