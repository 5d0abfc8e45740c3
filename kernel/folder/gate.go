package folder

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// TrustTool is the tool name of the question whether to trust a folder.
const TrustTool = tool.TrustQuestion

// maxSessions bounds the answers that are kept for sessions; sessions beyond it are
// asked again.
const maxSessions = 4096

// GateConfig assembles a [Gate]. All fields are required.
type GateConfig struct {
	Store *Store
	// Folder returns the folder that a session works in.
	Folder func(session string) (string, error)
	// Ask puts a question to a person and returns the answer.
	Ask func(ctx context.Context, call tool.Call, def tool.Definition, brief string) (approval.Decision, error)
}

// Gate decides whether sessions may run and change things in their folders. It
// implements [tool.Gate] and is safe for concurrent use.
type Gate struct {
	cfg GateConfig

	mu       sync.Mutex
	sessions map[string]answer        // by root session: what holds for it alone
	asking   map[string]chan struct{} // by root session and digest; closed with the answer
	holds    map[string]*hold         // by session
}

// answer is a person's answer for one session.
type answer struct {
	digest  string
	trusted bool
	why     string // of a refusal
	turn    string // the only one that it holds for; "" for all
}

// NewGate returns a gate.
func NewGate(cfg GateConfig) *Gate {
	g := &Gate{cfg: cfg, sessions: map[string]answer{}, asking: map[string]chan struct{}{}, holds: map[string]*hold{}}
	cfg.Store.OnChange(func(string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		clear(g.sessions) // a revoked folder is not trusted for a session either
		clear(g.holds)
	})
	return g
}

// Trusted reports whether a session may use its folder, without asking anybody. An
// unreadable folder is restricted.
func (g *Gate) Trusted(session string) bool {
	w, trusted, err := g.Open(session)
	if err != nil {
		return false
	}
	_ = w.Close() // nothing was written
	return trusted
}

// Agreed reports whether a session may use its folder and the folder's checks are
// exactly those that were trusted with it.
func (g *Gate) Agreed(session string, checks []string) bool {
	dir, err := g.cfg.Folder(session)
	if err != nil {
		return false
	}
	st, err := g.cfg.Store.Status(dir)
	if err != nil || (!st.Trusted && !g.of(session, st.Digest()).trusted) {
		return false
	}
	var brought, asked []Item
	for _, i := range st.Items {
		if i.Kind == Check {
			brought = append(brought, Item{Kind: Check, Runs: i.Runs})
		}
	}
	for _, c := range checks {
		asked = append(asked, Item{Kind: Check, Runs: c})
	}
	return slices.Equal(brought, sorted(asked))
}

// of returns the answer for a session, if it concerns this digest.
func (g *Gate) of(session, digest string) answer {
	root := event.Root(session)
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.sessions[root]; a.digest == digest {
		return a
	}
	return answer{}
}

// Admit implements [tool.Gate]: it admits calls in trusted folders, and asks about
// others, once for all calls of a session that wait for the same answer.
func (g *Gate) Admit(ctx context.Context, call tool.Call, _ tool.Definition) error {
	dir, err := g.cfg.Folder(call.SessionID)
	if err != nil {
		return err
	}
	for {
		st, known, err := g.known(call, dir)
		if known || err != nil {
			return err
		}
		done, mine := g.claim(call.SessionID, st.Digest())
		if mine {
			return g.ask(ctx, call, st, done)
		}
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// known reports whether it is known without a question if a call is admitted: if so, the error
// is nil or a rejection.
func (g *Gate) known(call tool.Call, dir string) (st Status, known bool, err error) {
	st, err = g.cfg.Store.Status(dir)
	if err != nil || st.Trusted {
		return st, st.Trusted, err
	}
	said := g.of(call.SessionID, st.Digest())
	switch {
	case said.trusted:
		return st, true, nil
	case said.why != "" && (said.turn == "" || said.turn == call.Turn):
		return st, true, &tool.RejectedError{Feedback: said.why}
	}
	return st, false, nil
}

// Decline records that the user refused a session's folder elsewhere: the gate does not
// ask again until the folder's content changes.
func (g *Gate) Decline(session string) {
	dir, err := g.cfg.Folder(session)
	if err != nil {
		return // its calls are refused in any case
	}
	st, err := g.cfg.Store.Status(dir)
	if err != nil || st.Trusted {
		return
	}
	root := event.Root(session)
	g.keep(root, answer{digest: st.Digest(), why: restricted(st.Folder, "its user was asked, and said no")})
}

// claim makes the caller the one that asks, unless another call already does.
func (g *Gate) claim(session, digest string) (done chan struct{}, mine bool) {
	root := event.Root(session)
	key := root + "\x00" + digest
	g.mu.Lock()
	defer g.mu.Unlock()
	if done, ok := g.asking[key]; ok {
		return done, false
	}
	done = make(chan struct{})
	g.asking[key] = done
	return done, true
}

// ask puts the question and stores the answer.
func (g *Gate) ask(ctx context.Context, call tool.Call, st Status, done chan struct{}) error {
	root := event.Root(call.SessionID)
	digest := st.Digest()
	defer func() {
		g.mu.Lock()
		delete(g.asking, root+"\x00"+digest)
		g.mu.Unlock()
		close(done)
	}()
	// Another call may have got the answer between the look for it and the claim.
	if _, known, err := g.known(call, st.Folder); known || err != nil {
		return err
	}
	if err := st.check(); err != nil {
		return err
	}
	params, err := plain(st.AsShown())
	if err != nil {
		return err
	}
	question := tool.Call{ID: "trust_" + rand.Text(), Name: TrustTool, Args: params, SessionID: call.SessionID, Turn: call.Turn, Origin: call.Origin}
	def := tool.Definition{Name: TrustTool, Identity: tool.Identity{Tool: TrustTool}, Kind: tool.KindExec, InputSchema: json.RawMessage(`{"type":"object"}`)}
	d, err := g.cfg.Ask(ctx, question, def, "trust the folder "+st.Folder)
	if err != nil {
		if ctx.Err() == nil { // nobody answered: the other calls of this turn do not wait as well
			g.keep(root, answer{digest: digest, why: restricted(st.Folder, err.Error()), turn: call.Turn})
		}
		return &tool.RejectedError{Feedback: restricted(st.Folder, err.Error())}
	}
	switch d.Response {
	case event.Approve:
		if _, err := g.cfg.Store.Trust(st.Folder, digest, d.By); err != nil {
			return err
		}
		return nil
	case event.ApproveForSession:
		g.keep(root, answer{digest: digest, trusted: true})
		return nil
	case event.Reject:
	}
	why := "it was not trusted"
	if d.Feedback != "" {
		why += ": " + d.Feedback
	}
	g.keep(root, answer{digest: digest, why: restricted(st.Folder, why)})
	return &tool.RejectedError{Feedback: restricted(st.Folder, why)}
}

// Untrusted is part of the error of every call that is refused because its folder is not
// trusted.
const Untrusted = "is not trusted: its files can be read and searched, nothing else"

func restricted(dir, why string) string {
	return fmt.Sprintf("the folder %s %s (%s). Its user can trust it with: yaya trust %s", dir, Untrusted, why, dir)
}

func (g *Gate) keep(root string, a answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sessions) >= maxSessions {
		clear(g.sessions)
	}
	g.sessions[root] = a
}

// plain writes JSON for people: without escapes for & and < in commands.
func plain(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
