package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/cut"
)

// maxNotifications is how many notifications are listed.
const maxNotifications = 200

// Notification tells somebody of one occurrence, which mostly needs them to act. All
// texts come from elsewhere, and are shown as text.
type Notification struct {
	ID     string    `json:"id" doc:"of this very occurrence: the next one is another notification"`
	Kind   string    `json:"kind" enum:"approval,server,trust,device,session" doc:"a call or a device that waits, a server with a problem, changes of one that wait for approval, a session that has finished"`
	Of     string    `json:"of" doc:"the id or name of what it is about"`
	Name   string    `json:"name" doc:"what people know it by: a tool, a server, a device, the title of a session"`
	State  string    `json:"state" doc:"waiting; failed, invalid or degraded; completed"`
	Detail string    `json:"detail,omitempty" doc:"for a call what it would do, for a server its reason"`
	Count  int       `json:"count,omitempty" doc:"the restarts of a server, or its changes that wait"`
	Node   string    `json:"node,omitempty" doc:"the node of the cluster that asks, if that is another one"`
	Time   time.Time `json:"time,omitzero"`
	Read   bool      `json:"read" doc:"somebody has read it, on any device"`
}

// kinds ranks the kinds: what stops work comes first.
var kinds = []string{"approval", "server", "trust", "device", "session"}

// notice fills in the id of a notification, which names its occurrence and tells nothing.
func notice(n Notification, occurrence ...string) Notification {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{n.Kind, n.Of}, occurrence...), "\x00")))
	n.ID = n.Kind + "-" + hex.EncodeToString(sum[:8])
	n.Of, n.Name, n.Detail = cut.Text(n.Of, 256), cut.Text(n.Name, 256), cut.Text(n.Detail, 1024)
	return n
}

func (a *API) notificationRoutes() {
	r := routes{a, "notifications", a.cfg.Reads != nil && a.cfg.Control != nil, "notifications"}
	noted(r, "servers with `config:read`, devices with `devices:read`", "GET", "/api/notifications", "listNotifications", api.For(auth.SessionsRead), "List what somebody should know of, most urgent first", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body []Notification }, error) {
		all, err := a.notifications(ctx)
		return &struct{ Body []Notification }{all}, err
	})
	handle(r, "POST", "/api/notifications/read", "readNotifications", api.For(auth.SessionsWrite), "Mark notifications as read, for all devices; those that are gone are left out", http.StatusNoContent, func(ctx context.Context, in *struct {
		Body struct {
			IDs []string `json:"ids" maxItems:"200"`
		}
	},
	) (*none, error) {
		return nil, a.readNotifications(ctx, in.Body.IDs)
	})
}

// notifications returns those that the caller may see.
func (a *API) notifications(ctx context.Context) ([]Notification, error) {
	who := auth.FromContext(ctx)
	all := []Notification{}
	if a.cfg.Approvals != nil {
		for _, x := range a.allAsks(ctx) {
			all = append(all, notice(Notification{Kind: "approval", Of: x.ID, Name: x.Tool, State: "waiting", Detail: x.Brief, Node: x.Node}))
		}
	}
	if a.cfg.Servers != nil && auth.Allow(who, auth.ConfigRead) == nil {
		for _, s := range a.cfg.Servers.List() {
			if n, is := ofServer(s); is {
				all = append(all, n)
			}
		}
		waiting, err := a.cfg.Servers.Waiting()
		if err != nil { // GET /api/mcp/quarantine says it; the calls that wait are shown all the same
			a.cfg.Log.Warn().Err(err).Msg("the notifications lack what waits for approval of servers")
		}
		for _, w := range waiting {
			all = append(all, ofWaiting(w))
		}
	}
	if a.cfg.Devices != nil && auth.Allow(who, auth.DevicesRead) == nil {
		devices, err := a.cfg.Devices.Devices(who)
		if err != nil {
			return nil, err
		}
		for _, d := range devices {
			if d.Status == "pending" {
				all = append(all, notice(Notification{Kind: "device", Of: d.ID, Name: cmp.Or(d.Label, d.ID), State: "waiting", Detail: d.Peer, Time: d.Since.UTC()}, d.RequestID))
			}
		}
	}
	if a.cfg.Live != nil {
		for _, t := range slices.Backward(a.cfg.Live.finished.all()) {
			n := Notification{Kind: "session", Of: t.session, Name: t.session, State: "completed", Time: t.at}
			if t.failed {
				n.State = "failed"
			}
			if a.cfg.Title != nil {
				n.Name = cmp.Or(a.cfg.Title(t.session), t.session)
			}
			all = append(all, notice(n, t.turn))
		}
	}
	slices.SortStableFunc(all, func(x, y Notification) int { return slices.Index(kinds, x.Kind) - slices.Index(kinds, y.Kind) })
	all = all[:min(len(all), maxNotifications)]
	read := a.cfg.Reads.all()
	for i := range all {
		all[i].Read = read[all[i].ID]
	}
	return all, nil
}

// trouble are the states in which a server does not do what it was configured for.
var trouble = []string{"failed", "invalid", "degraded"}

// ofServer returns the notification of a server with a problem. One that fails again and
// again has one: the occurrence begins when the server was last in order.
func ofServer(s Server) (Notification, bool) {
	if !slices.Contains(trouble, s.State) {
		return Notification{}, false
	}
	n := Notification{Kind: "server", Of: s.Name, Name: s.Name, State: s.State, Detail: cmp.Or(s.Reason, s.LastError), Count: s.Restarts, Time: s.Since.UTC()}
	begun := ""
	for _, h := range slices.Backward(s.History) {
		if h.State == "ready" || h.State == "disabled" {
			begun = control.Stamp(h.Since)
			break
		}
	}
	return notice(n, s.State, begun), true
}

// ofWaiting returns the notification of what waits for approval of a server.
func ofWaiting(w Waiting) Notification {
	n := Notification{Kind: "trust", Of: w.Server, Name: w.Server, State: "changed", Count: len(w.Tools)}
	if w.Instructions != "" {
		n.Count++
	}
	if w.Runs != "" {
		n.State = "waiting"
	}
	n.Count = max(1, n.Count)
	names := []string{}
	for _, x := range w.Tools[:min(len(w.Tools), 4)] {
		names = append(names, cut.Text(x.Name, 128))
	}
	n.Detail = strings.Join(names, ", ")
	return notice(n, w.Digest)
}

// readNotifications puts into the control log which of the caller's notifications are read
// now. Only those that are there and were not read are written: a caller cannot fill the log.
func (a *API) readNotifications(ctx context.Context, ids []string) error {
	all, err := a.notifications(ctx)
	if err != nil {
		return err
	}
	var p readPayload
	for _, n := range all {
		if !n.Read && slices.Contains(ids, n.ID) {
			p.IDs = append(p.IDs, n.ID)
		}
	}
	if len(p.IDs) == 0 {
		return nil
	}
	return a.audited(ctx, readEvent, "", p)
}
