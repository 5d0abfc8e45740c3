package admin

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/linelog"
	"github.com/yaya-ai/yaya/internal/traffic"
)

// Traffic is the record of calls.
type Traffic struct {
	Log *traffic.Log
	// Data is the data directory, below which the records lie.
	Data *os.Root
	// Bodies says of which calls arguments and results are recorded, and why if nobody
	// has set it.
	Bodies func() (mode, why string)
}

// Calls is a part of the record of calls.
type CallPage struct {
	Calls  []traffic.Record `json:"calls" doc:"oldest first"`
	More   bool             `json:"more" doc:"there are earlier ones, or later ones if after was given"`
	Lost   traffic.Lost     `json:"lost" doc:"what was not recorded since the start"`
	Bodies string           `json:"bodies" doc:"of which calls arguments and results are recorded: off, errors, all"`
	Why    string           `json:"why,omitempty" doc:"why they are off although nobody has set it"`
}

// InFilter says which calls are wanted.
type InFilter struct {
	Server    string    `query:"server" maxLength:"256"`
	Tool      string    `query:"tool" maxLength:"256" doc:"the server's name of it, or the name that clients call it by"`
	Client    string    `query:"client" maxLength:"256" doc:"what the client calls itself"`
	Principal string    `query:"principal" maxLength:"256"`
	Errors    bool      `query:"errors" doc:"only calls that failed"`
	Since     time.Time `query:"since" doc:"RFC 3339"`
	Until     time.Time `query:"until" doc:"RFC 3339"`
	After     int64     `query:"after" minimum:"0" doc:"an id: the first calls after that one"`
	Full      bool      `query:"full" doc:"whole arguments and results, not their first 240 bytes"`
}

func (in *InFilter) filter() traffic.Filter {
	return traffic.Filter{Server: in.Server, Tool: in.Tool, Client: in.Client, Principal: in.Principal, Errors: in.Errors, Since: in.Since, Until: in.Until, After: in.After, Bodies: in.Full}
}

type inCalls struct {
	InFilter
	Before int64 `query:"before" minimum:"0" doc:"an id: the last calls before that one"`
	Limit  int   `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// shownTo returns a record as a caller may see it: what was sent and answered is for
// the user that runs yaya alone.
func shownTo(ctx context.Context, r traffic.Record) traffic.Record {
	if auth.FromContext(ctx).Kind != auth.Owner {
		r.Arguments, r.Result, r.Error = "", "", ""
	}
	return r
}

// InSeries says which calls are summed up, and how. The last slice is the current one.
type InSeries struct {
	Server string `query:"server" maxLength:"256"`
	Tool   string `query:"tool" maxLength:"256"`
	Client string `query:"client" maxLength:"256"`
	Step   int    `query:"step" minimum:"1" maximum:"10800" default:"60" doc:"seconds of a slice"`
	Slices int    `query:"slices" minimum:"1" maximum:"240" default:"60"`
	Days   int    `query:"days" minimum:"0" maximum:"366" doc:"the last so many days instead, in a slice each: by the daily sums, which are kept for a year"`
	By     string `query:"by" enum:"total,server,tool,client" default:"total" doc:"groups of the same time"`
}

func (a *API) trafficRoutes() {
	t := a.cfg.Traffic
	r := routes{a, "traffic", t != nil, "record of calls"}
	const bodies = "arguments, results and errors: only the user that runs yaya"
	noted(r, bodies, "GET", "/api/traffic", "listCalls", api.For(auth.AuditRead), "List the last calls that match: caller, tool and outcome. Only the user that runs yaya sees arguments and results", http.StatusOK, func(ctx context.Context, in *inCalls) (*struct{ Body CallPage }, error) {
		f := in.filter()
		f.Before, f.Limit = in.Before, in.Limit
		t.Log.Settle(ctx)
		calls, more, err := traffic.Read(ctx, t.Data, f)
		if err != nil {
			return nil, err
		}
		for i := range calls {
			calls[i] = shownTo(ctx, calls[i])
		}
		page := CallPage{Calls: calls, More: more, Lost: t.Log.Lost()}
		page.Bodies, page.Why = t.Bodies()
		return &struct{ Body CallPage }{page}, nil
	})
	noted(r, bodies, "GET", "/api/traffic/events", "followCalls", api.For(auth.AuditRead), "Stream calls as they end: server-sent events named call, and lost where some were removed before they could be sent. The stream begins behind after, or behind Last-Event-ID, or now", http.StatusOK, func(ctx context.Context, in *struct {
		InFilter
		LastID string `header:"Last-Event-ID" maxLength:"20"`
	},
	) (*huma.StreamResponse, error) {
		f := in.filter()
		if in.LastID != "" {
			id, err := strconv.ParseInt(in.LastID, 10, 64)
			if err != nil || id < 0 {
				return nil, api.Fail(http.StatusBadRequest, "Last-Event-ID is the id of an event, not %q", in.LastID)
			}
			f.After = id
		}
		tail, err := traffic.Follow(t.Data, f)
		if err != nil {
			return nil, err
		}
		return a.stream(func() ([]item, error) {
			calls, lost, err := tail.Next()
			var out []item
			if lost {
				out = append(out, item{"lost", 0, struct{}{}})
			}
			for _, c := range calls {
				out = append(out, item{"call", c.ID, shownTo(ctx, c)})
			}
			return out, err
		}, t.Log.News)
	})
	handle(r, "GET", "/api/traffic/daily", "dailyCalls", api.For(auth.AuditRead), "Get totals of calls by day, for up to a year", http.StatusOK, func(_ context.Context, in *InDays) (*struct{ Body []traffic.Day }, error) {
		days, err := t.daily(in.query())
		return &struct{ Body []traffic.Day }{days}, err
	})
	handle(r, "GET", "/api/traffic/nodes", "dailyCallsOfNodes", api.For(auth.AuditRead), "Get totals of calls by day of all nodes of the cluster", http.StatusOK, func(ctx context.Context, in *InDays) (*struct{ Body NodeTotals }, error) {
		out, err := a.allDays(ctx, in.query())
		return &struct{ Body NodeTotals }{out}, err
	})
	handle(r, "GET", "/api/traffic/series", "callSeries", api.For(auth.AuditRead), "Get totals of calls by time, for up to 30 days in 1 to 240 slices or a year in days, and by server, tool or client", http.StatusOK, func(ctx context.Context, in *InSeries) (*struct{ Body traffic.Series }, error) {
		if in.Days > 0 {
			q := traffic.DayQuery{Server: in.Server, Tool: in.Tool, Client: in.Client, By: traffic.By(in.By)}
			s, err := traffic.SeriesOfDays(t.Data, t.Log, q, in.Days, time.Now())
			return &struct{ Body traffic.Series }{s}, err
		}
		step := time.Duration(in.Step) * time.Second
		until := time.Now().Truncate(step).Add(step) // slices of clients that ask again are the same
		q := traffic.SeriesQuery{Filter: traffic.Filter{Server: in.Server, Tool: in.Tool, Client: in.Client, Since: until.Add(-time.Duration(in.Slices) * step), Until: until}, Step: step, By: traffic.By(in.By)}
		t.Log.Settle(ctx)
		s, err := traffic.SumUp(ctx, t.Data, q)
		return &struct{ Body traffic.Series }{s}, err
	})
	noted(r, bodies, "GET", "/api/traffic/{id}", "getCall", api.For(auth.AuditRead), "Get one call, with arguments and result", http.StatusOK, func(ctx context.Context, in *struct {
		ID int64 `path:"id" minimum:"1"`
	},
	) (*struct{ Body traffic.Record }, error) {
		t.Log.Settle(ctx)
		c, ok, err := traffic.Get(ctx, t.Data, in.ID)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, api.Fail(http.StatusNotFound, "there is no call %d in the record: the oldest are removed", in.ID)
		}
		return &struct{ Body traffic.Record }{shownTo(ctx, c)}, nil
	})
	a.logRoutes()
}

// inLog asks for the lines of a server.
type inLog struct {
	InServer
	After int64 `query:"after" minimum:"0" doc:"an id: the lines after that one"`
	Limit int   `query:"limit" minimum:"1" maximum:"2000" default:"200" doc:"the last so many"`
}

func (a *API) logRoutes() {
	r := routes{a, "mcp", a.cfg.Logs != nil, "logs of servers"}
	ring := func(name string) (*linelog.Ring, error) {
		if l := a.cfg.Logs(name); l != nil {
			return l, nil
		}
		return nil, api.Fail(http.StatusNotFound, "no server named %q was started since yaya was", name)
	}
	lines := func(l *linelog.Ring, after int64, limit int) []linelog.Line {
		out := l.After(after, limit)
		for i := range out {
			out[i].Text = a.cfg.Mask(out[i].Text)
		}
		return out
	}
	handle(r, "GET", "/api/mcp/servers/{name}/logs", "serverLogs", api.For(auth.ConfigRead), "Get recent output of a server: standard error, log messages, changes of state", http.StatusOK, func(_ context.Context, in *inLog) (*struct{ Body []linelog.Line }, error) {
		l, err := ring(in.Name)
		if err != nil {
			return nil, err
		}
		return &struct{ Body []linelog.Line }{lines(l, in.After, in.Limit)}, nil
	})
	handle(r, "GET", "/api/mcp/servers/{name}/logs/events", "followServerLogs", api.For(auth.ConfigRead), "Stream output of a server: server-sent events named line, beginning with the last ones", http.StatusOK, func(_ context.Context, in *inLog) (*huma.StreamResponse, error) {
		l, err := ring(in.Name)
		if err != nil {
			return nil, err
		}
		after, limit := in.After, in.Limit
		return a.stream(func() ([]item, error) {
			var out []item
			for _, line := range lines(l, after, limit) {
				out, after = append(out, item{"line", line.ID, line}), line.ID
			}
			limit = 2000
			return out, nil
		}, l.News)
	})
}
