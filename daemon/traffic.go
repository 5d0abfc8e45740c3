package daemon

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// record is the record of calls. It is an observer of those that come in neither from MCP
// clients nor from the command line, which are recorded where they come in.
type record struct {
	log      *traffic.Log
	settings func() (trafficSettings, error)
	enrolled func() int // counts the devices and lasting tokens that may call
}

// newRecord begins the record of calls. It knows the secrets of yaya's settings and
// environment; those of servers it learns as they are started.
func newRecord(at *place, c *controlPlane) *record {
	var inherited []string
	for _, kv := range os.Environ() {
		if name, v, _ := strings.Cut(kv, "="); masked.Inherited(name, v) {
			inherited = append(inherited, v)
		}
	}
	at.secrets.Learn(inherited...)
	r := &record{settings: config.Derive(at.settings, func(s *config.Store) (trafficSettings, error) {
		all := s.Secrets()
		at.secrets.Learn(all...)
		at.secrets.Declare(slices.DeleteFunc(all, masked.Common)...)
		set := trafficSettings{issuer: s.Text("auth.issuer") != ""}
		set.Days, set.MaxBytes = trafficDays(s), int64(s.Int("traffic.max_bytes"))
		set.Bodies, set.chosen = traffic.ParseBodies(s.Text("traffic.bodies"))
		return set, nil
	})}
	if c != nil {
		r.enrolled = c.devices.Enrolled
	} else {
		r.enrolled = (&census{data: at.data, log: at.log}).enrolled
	}
	r.log = traffic.New(traffic.Config{Root: at.data, Settings: r.recorded, Mask: at.secrets.Append, Margin: masked.Longest, Log: at.log})
	return r
}

// trafficDays returns for how many days calls are recorded: retention.traffic is the newer
// name of the setting.
func trafficDays(s *config.Store) int {
	if _, _, ok := s.Get("retention.traffic"); ok {
		return s.Int("retention.traffic")
	}
	return s.Int("traffic.days")
}

// follow has changed settings hold at once.
func (r *record) follow(b *bus.Bus) (*bus.Subscription, error) {
	return bus.On(b, bus.SubscribeOptions{Name: "traffic"}, event.ConfigWasUpdated, func(context.Context, event.Event, event.ConfigUpdated) error {
		r.log.Refresh()
		return nil
	})
}

// trafficSettings are the settings of the record as they are written.
type trafficSettings struct {
	traffic.Settings
	chosen bool // traffic.bodies is set
	issuer bool
}

// recorded returns the settings of the record in force: arguments and results are kept
// while the user that runs yaya is the only one who can call, unless it is set.
func (r *record) recorded() traffic.Settings {
	set, _ := r.settings() // it has no errors
	if !set.chosen {
		set.Bodies = traffic.BodiesAll
		if r.others() != "" {
			set.Bodies = traffic.BodiesOff
		}
	}
	return set.Settings
}

// others says who else may call tools, "" if nobody.
func (r *record) others() string {
	set, _ := r.settings()
	switch {
	case r.enrolled() > 0:
		return "devices are enrolled, or have lasting tokens"
	case set.issuer:
		return "auth.issuer admits others"
	}
	return ""
}

// bodies says of which calls arguments and results are recorded, and why if nobody has
// chosen that.
func (r *record) bodies() (mode, why string) {
	mode = r.recorded().Bodies.String()
	if set, _ := r.settings(); !set.chosen && mode == traffic.BodiesOff.String() {
		why = r.others()
	}
	return mode, why
}

// ToolCalled implements [tool.Observer]. Tapes have the arguments and results of agents.
func (r *record) ToolCalled(call tool.Call, def tool.Definition, res tool.Result, took time.Duration) {
	if call.Origin == tool.OriginMCP || call.Origin == tool.OriginCLI || call.Origin == tool.OriginNode {
		return
	}
	c := traffic.Call{
		Start: time.Now().Add(-took), Took: took, Origin: string(call.Origin), Principal: call.Caller.Principal, Session: call.SessionID,
		Method: traffic.MethodTool, Server: def.Identity.Provider, Tool: def.Identity.Tool, Name: call.Name, Outcome: traffic.OutcomeOK,
		Approved: res.Approved, Arguments: call.Args, Bare: call.Origin == tool.OriginLoop,
	}
	if c.Tool == "" {
		c.Tool = call.Name
	}
	if !res.OK {
		c.Outcome, c.Error = string(res.ErrorKind), res.Brief
		if c.Bare && res.ErrorKind == tool.ErrTool { // what the tool said is on the tape
			c.Error = ""
		}
	}
	for _, b := range res.Display {
		c.ResultSize += len(b.Text) + len(b.Markdown) + len(b.Data)
		if !c.Bare && len(c.Result) < traffic.MaxBody+masked.Longest {
			c.Result = append(append(c.Result, b.Content()...), '\n')
		}
	}
	if len(res.Display) == 0 {
		c.Result = res.Structured
	}
	r.log.Add(&c)
}
