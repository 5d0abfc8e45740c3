package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// NodePath is below which nodes ask each other about sessions; see [Service.ForNodes].
const NodePath = "/node/sessions"

// ForNodes answers other nodes: whether a session is here, and with a page of those that are.
func (s *Service) ForNodes(w http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("id"); id != "" {
		if !s.here(id) {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusOK)
		return
	}
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > maxPage {
		http.Error(w, "the limit is wrong", http.StatusBadRequest)
		return
	}
	p, err := s.ownPage(limit, q.Get("cursor"), Status(q.Get("status")))
	if err != nil {
		s.cfg.Log.Warn().Err(err).Msg("another node gets no page of sessions")
		http.Error(w, "the sessions cannot be listed", http.StatusInternalServerError)
		return
	}
	api.Write(w, http.StatusOK, p)
}

// here reports whether this node has a session. An id that no session can have is everywhere: each
// node can say so.
func (s *Service) here(id string) bool {
	if event.CheckClientSession(id) != nil {
		return true
	}
	switch _, err := s.cfg.Sessions.Find(id, ""); {
	case errors.Is(err, session.ErrElsewhere): // it is being put away, and another node has it
		return false
	case !errors.Is(err, session.ErrNotFound):
		return true
	}
	return s.emptied(id) != nil && s.cfg.Sessions.Elsewhere(context.Background(), id) == ""
}

// orAdopted serves requests about a session that no node which answers has: its node may be dead, and this
// one take it over.
func (s *Service) orAdopted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.PathValue("session_id"); !s.here(id) {
			_, err := s.cfg.Sessions.Adopt(r.Context(), id)
			if err != nil && !errors.Is(err, session.ErrNotFound) {
				s.cfg.Log.Warn().Err(err).Str("session", id).Msg("a session of another node cannot be served")
				s.Refuse(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Routes returns the routes. Those about one session lead to the node that has it.
func (s *Service) Routes() []api.Route {
	all := slices.Clone(s.API.Routes())
	if s.cfg.Nodes == nil {
		return all
	}
	for i := range all {
		if next := all[i].Handler; strings.Contains(all[i].Pattern, "{session_id}") && next != nil {
			all[i].Handler = s.Anywhere(s.cfg.Nodes, s.elsewhere, s.orAdopted(next))
		}
	}
	return all
}

// elsewhere returns where nodes ask each other for the session of a request, "" if it is here.
func (s *Service) elsewhere(r *http.Request) string {
	id := r.PathValue("session_id")
	if s.here(id) {
		return ""
	}
	return NodePath + "/" + url.PathEscape(id)
}

// placed is a session with its place in the list.
type placed struct {
	SessionRow
	Changed int64 `json:"changed_us"`
}

// nodePage is a page of the sessions of one node.
type nodePage struct {
	Sessions []placed `json:"sessions"`
	// More says that sessions follow, behind the place Last.
	More bool   `json:"more,omitempty"`
	Last string `json:"last,omitempty"`
}

func placeOf(changed int64, id string) string { return strconv.FormatInt(changed, 10) + "." + id }

// describe says what a session is, for the lists of other nodes while this one is dead.
func (s *Service) describe(r record) error {
	if !s.cfg.Sessions.Shared() {
		return nil
	}
	r.SystemPrompt = "" // it may be long
	raw, err := json.Marshal(placed{SessionRow{Session: r.Session, State: "idle"}, r.Changed.UnixMicro()})
	if err == nil {
		s.cfg.Sessions.Describe(r.ID, raw)
	}
	return err
}

// awayTime is how long a list waits for what is known of nodes that do not answer.
const awayTime = 2 * time.Second

// ofMissing returns the sessions of nodes that do not answer, as they were said to be: those behind a cursor. They can
// be opened: another node takes them over.
func (s *Service) ofMissing(ctx context.Context, nodes []string, cursor string, status Status) (out []placed) {
	ctx, cancel := context.WithTimeout(ctx, awayTime)
	defer cancel()
	rows, err := s.cfg.Sessions.Away(ctx, nodes)
	if err != nil {
		s.cfg.Log.Warn().Err(err).Msg("the sessions of nodes that do not answer cannot be listed")
		return nil
	}
	us, after, _ := cutCursor(cursor)
	for _, r := range rows {
		p := placed{SessionRow{Session: Session{ID: r.ID, Workspace: r.Workspace, Status: Active, UpdatedAt: r.Said.UTC()}, State: "idle"}, r.Said.UnixMicro()}
		if r.Data != nil && (json.Unmarshal(r.Data, &p) != nil || p.ID != r.ID) || !addressable(r.ID) {
			continue
		}
		if p.Node = r.Node; status != "" && p.Status != status || cursor != "" && (p.Changed > us || p.Changed == us && p.ID <= after) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// page returns a page of the sessions of all nodes.
func (s *Service) page(ctx context.Context, limit int, cursor string, status Status) (*outSessions, error) {
	p, err := s.ownPage(limit, cursor, status)
	if err != nil {
		return nil, err
	}
	out := new(outSessions)
	if s.cfg.Nodes != nil {
		query := url.Values{"limit": {strconv.Itoa(limit)}, "cursor": {cursor}, "status": {string(status)}}
		out.Body.Missing = api.AskNodes(ctx, s.cfg.Nodes, NodePath+"?"+query.Encode(), func(node string, other nodePage) {
			for _, x := range other.Sessions {
				x.Node = node
				p.Sessions = append(p.Sessions, x)
			}
			p.More = p.More || other.More
		})
		for _, x := range s.ofMissing(ctx, out.Body.Missing, cursor, status) {
			if !slices.ContainsFunc(p.Sessions, func(there placed) bool { return there.ID == x.ID }) { // somebody has it meanwhile
				p.Sessions = append(p.Sessions, x)
			}
		}
		slices.SortStableFunc(p.Sessions, func(a, b placed) int { // as the index of one node has them
			return cmp.Or(cmp.Compare(b.Changed, a.Changed), strings.Compare(a.ID, b.ID))
		})
		if len(p.Sessions) > limit {
			p.Sessions, p.More = p.Sessions[:limit], true
		}
		if len(p.Sessions) > 0 {
			last := p.Sessions[len(p.Sessions)-1]
			p.Last = placeOf(last.Changed, last.ID)
		}
	}
	out.Body.Sessions = make([]SessionRow, len(p.Sessions))
	for i, x := range p.Sessions {
		out.Body.Sessions[i] = x.SessionRow
	}
	if p.More {
		out.Body.Next = p.Last
	}
	return out, nil
}
