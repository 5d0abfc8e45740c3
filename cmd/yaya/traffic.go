package main

import (
	"context"
	"errors"
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

// recordCalls begins the record of calls. It knows the secrets of yaya's settings and
// environment; those of servers it learns as they are started.
func (a *app) recordCalls(c appConfig) error {
	var inherited []string
	for _, kv := range os.Environ() {
		if name, v, _ := strings.Cut(kv, "="); masked.Inherited(name, v) {
			inherited = append(inherited, v)
		}
	}
	a.secrets.Learn(inherited...)
	a.trafficSettings = config.Derive(c.settings, func(s *config.Store) (trafficSettings, error) {
		all := s.Secrets()
		a.secrets.Learn(all...)
		a.secrets.Declare(slices.DeleteFunc(all, masked.Common)...)
		set := trafficSettings{issuer: s.Text("auth.issuer") != ""}
		set.Days, set.MaxBytes = s.Int("traffic.days"), int64(s.Int("traffic.max_bytes"))
		set.Bodies, set.chosen = traffic.ParseBodies(s.Text("traffic.bodies"))
		return set, nil
	})
	a.enrolled = c.enrolled
	a.traffic = traffic.New(traffic.Config{
		Root: c.data, Settings: a.recorded, Mask: a.secrets.Append, Margin: masked.Longest, Log: a.log,
	})
	sub, err := bus.On(a.kernel.Bus, bus.SubscribeOptions{Name: "traffic"}, event.ConfigWasUpdated, func(context.Context, event.Event, event.ConfigUpdated) error {
		a.traffic.Refresh()
		return nil
	})
	if err != nil {
		return errors.Join(err, a.traffic.Close(context.Background()))
	}
	a.unfollow = sub.Close
	return nil
}

// trafficSettings are the settings of the record as they are written.
type trafficSettings struct {
	traffic.Settings
	chosen bool // traffic.bodies is set
	issuer bool
}

// recorded returns the settings of the record in force: arguments and results are kept
// while the user that runs yaya is the only one who can call, unless it is set.
func (a *app) recorded() traffic.Settings {
	set, _ := a.trafficSettings() // it has no errors
	if !set.chosen {
		set.Bodies = traffic.BodiesAll
		if a.others() != "" {
			set.Bodies = traffic.BodiesOff
		}
	}
	return set.Settings
}

// others says who else may call tools, "" if nobody.
func (a *app) others() string {
	set, _ := a.trafficSettings()
	switch {
	case a.enrolled != nil && a.enrolled() > 0:
		return "devices are enrolled, or have lasting tokens"
	case set.issuer:
		return "auth.issuer lets others in"
	}
	return ""
}

// bodies says of which calls arguments and results are recorded, and why if nobody has
// chosen that.
func (a *app) bodies() (mode, why string) {
	mode = a.recorded().Bodies.String()
	if set, _ := a.trafficSettings(); !set.chosen && mode == traffic.BodiesOff.String() {
		why = a.others()
	}
	return mode, why
}

// calls records the calls of tools that come in neither from MCP clients nor from the
// command line; those are recorded where they come in. What agents send and get is on their tapes.
type calls struct{ a *app }

// ToolCalled implements [tool.Observer].
func (o calls) ToolCalled(call tool.Call, def tool.Definition, res tool.Result, took time.Duration) {
	if call.Origin == tool.OriginMCP || call.Origin == tool.OriginCLI || o.a.traffic == nil {
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
	o.a.traffic.Add(&c)
}
