package sessions

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/follow"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/mention"
	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Config assembles a [Service]. All fields are required, but those that say
// otherwise.
type Config struct {
	// Root is the folder of the sessions' folders; the caller closes it.
	Root      *os.Root
	Bus       *bus.Bus
	Sessions  *session.Manager
	Loop      *loop.Loop
	Approvals *approval.Runtime
	Artifacts *tool.Store
	// Secrets are in nothing that is kept of a session. Optional.
	Secrets *masked.Secrets
	// Price returns what a model's tokens cost, in US dollars; nil: nothing.
	Price func(model string, u event.Usage) float64
	// Strategy drives sessions that name none, if it is there; "" is the kernel's.
	Strategy string
	// HasStrategy reports whether there is a strategy of that id; nil: there is.
	HasStrategy func(id string) bool
	// Models are the models that sessions can have; nil: only the active one.
	Models Models
	// MayUse returns the folder that a session works in when somebody asks for dir, or
	// why they may not; nil: everybody may.
	MayUse func(who auth.Principal, dir string) (string, error)
	// Trusted reports whether the folder of a session is trusted; nil: it is.
	Trusted func(session string) bool
	// Audit is called before something is deleted, and prevents that with an error. It may
	// be nil.
	Audit func(ctx context.Context, event, target string, payload map[string]any) error
	// Closed is called after a session was closed; it must not block. Optional.
	Closed func(session string)
	// Undo undoes the last change of files by a session's calls; nil: nothing is kept.
	Undo func(ctx context.Context, session string) (undo.Undone, error)
	// Servers offer their resources and prompts for messages; nil for none.
	Servers Servers
	// Nodes are the other nodes of a cluster; nil for none.
	Nodes api.Nodes
	// KeepAlive is when a comment is sent to readers if nothing else is. Default 15 s.
	KeepAlive time.Duration
	Version   string
	Log       zerolog.Logger
}

// Models are the models that sessions can have.
type Models interface {
	// Choices returns those that are configured.
	Choices() []models.Choice
	// Choose returns the one that a session's choice names, "" for the active one, or why there is none.
	Choose(choice string) (models.Choice, error)
}

// Servers are the MCP servers whose resources and prompts the user of a session can put into a message.
// Each call names the user and the session.
type Servers interface {
	// Servers returns the connected ones.
	Servers(ctx context.Context, call tool.Call) []mention.Server
	// Resources and Prompts return those of a server that begin with a prefix, as far as they fit, and
	// the number of the others.
	Resources(ctx context.Context, call tool.Call, server, prefix string) (list []mention.Resource, more int, err error)
	Prompts(ctx context.Context, call tool.Call, server, prefix string) (list []mention.Prompt, more int, err error)
	// Read returns a resource as text. That of Read and Prompt has no invisible character, except line
	// breaks and tabs.
	Read(ctx context.Context, call tool.Call, server, uri string) tool.Result
	// Prompt returns a prompt as the text of a message.
	Prompt(ctx context.Context, call tool.Call, server, name string, args map[string]string) tool.Result
}

// Service is the API, an [http.Handler] for everything below /v1/.
type Service struct {
	*api.API
	cfg   Config
	sub   *bus.Subscription
	feeds *follow.Set[*feed]

	mu      sync.Mutex
	closed  bool
	records map[string]*record // of sessions that are in use
	readers int
	create  sync.Mutex // held while a session is made: a key makes one
	disk    sync.Mutex // held while a session.json is written
}

// New returns the API; [Service.Close] ends what it starts.
func New(cfg Config) (*Service, error) {
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 15*time.Second)
	if cfg.Price == nil {
		cfg.Price = func(string, event.Usage) float64 { return 0 }
	}
	if cfg.MayUse == nil {
		cfg.MayUse = func(_ auth.Principal, dir string) (string, error) { return dir, nil }
	}
	if cfg.Closed == nil {
		cfg.Closed = func(string) {}
	}
	if cfg.Trusted == nil {
		cfg.Trusted = func(string) bool { return true }
	}
	if cfg.Audit == nil {
		cfg.Audit = func(context.Context, string, string, map[string]any) error { return nil }
	}
	if cfg.Models == nil {
		cfg.Models = noModels{}
	}
	if cfg.HasStrategy == nil {
		cfg.HasStrategy = func(string) bool { return true }
	}
	s := &Service{cfg: cfg, records: map[string]*record{}}
	s.feeds = follow.New(follow.Config[*feed]{Sessions: cfg.Sessions, Linger: idleAfter, New: func(f *follow.Follower) *feed {
		return &feed{Follower: f, s: s, readers: map[*reader]struct{}{}, progress: map[string]progressData{}}
	}})
	s.declare()
	var err error
	// A feed also records events of our session that come from elsewhere.
	s.sub, err = cfg.Bus.Subscribe(bus.SubscribeOptions{Name: "v1", Filter: func(ev event.Event) bool {
		return ev.Kind == event.SessionWasDeleted.Name() || s.known(ev.SessionID) && !s.feeds.Keep(ev.SessionID)
	}}, []string{event.UserMessageReceived.Name(), event.TurnWasStarted.Name(), event.SessionWasDeleted.Name()}, func(ctx context.Context, ev event.Event) error {
		if ev.Kind == event.SessionWasDeleted.Name() { // or has gone to another node
			s.forget(ev.SessionID)
			return nil
		}
		f, err := s.join(ctx, ev.SessionID)
		if err != nil {
			return err
		}
		f.Leave()
		return nil
	})
	return s, err
}

// Close ends every stream and every feed, and waits for them.
func (s *Service) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.mu.Unlock()
	s.sub.Close()
	s.feeds.Close()
}

// ApprovalTimeout is how long asks of a session wait, 0 for as long as those of all.
func (s *Service) ApprovalTimeout(id string) time.Duration {
	r, err := s.record(id)
	if err != nil || r == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(r.ApprovalTimeout) * time.Second
}
