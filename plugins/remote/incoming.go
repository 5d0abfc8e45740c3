package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// request implements [incoming]. It runs on the reader, in the order of the messages.
func (p *Plugin) request(cn *conn, m *jsonrpc.Message) {
	p.mu.Lock()
	c := p.c
	p.mu.Unlock()
	result, err := any(Nothing{}), error(nil)
	switch m.Method {
	case MethodEmit:
		err = p.emitted(cn, c, m)
	case MethodLog:
		var l LogParams
		if err = params(m, &l); err == nil {
			p.log(l.Level, l.Message)
		}
	case MethodProgress:
		var g ProgressParams
		if err = params(m, &g); err == nil {
			cn.progress(g)
		}
	case MethodConfig:
		if c == nil {
			err = errNotLoaded
			break
		}
		result = p.settings(c)
	case MethodRequest:
		p.requested(cn, c, m)
		return
	default:
		err = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("unknown method %.100q", m.Method)}
	}
	p.answer(cn, m, result, err)
}

// answer answers a request of the plugin; the failure of a notification is logged.
func (p *Plugin) answer(cn *conn, m *jsonrpc.Message, result any, err error) {
	if err == nil {
		cn.reply(m.ID, result, nil)
		return
	}
	failed, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		failed = &jsonrpc.Error{Code: CodeRefused, Message: cut.Text(err.Error(), MaxLogText)}
		if errors.Is(err, bus.ErrClosed) {
			failed.Code = CodeFailed
		}
	}
	if m.ID == nil {
		p.log("warn", fmt.Sprintf("%s was refused: %s", m.Method, failed.Message))
		return
	}
	cn.reply(m.ID, nil, failed)
}

var errNotLoaded = &jsonrpc.Error{Code: CodeFailed, Message: "the plugin is not loaded"}

// params decodes the params of a message.
func params(m *jsonrpc.Message, to any) error {
	raw := m.Params.Raw()
	if raw == nil {
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: cut.Text(fmt.Sprintf("params of %s: %v", m.Method, err), 500)}
	}
	return nil
}

// emitted publishes an event, at most at the permitted rate: a plugin that emits more waits
// for its own pipe.
func (p *Plugin) emitted(cn *conn, c plugin.Context, m *jsonrpc.Message) error {
	if c == nil {
		return errNotLoaded
	}
	var e EmitParams
	if err := params(m, &e); err != nil {
		return err
	}
	if err := cn.emits.Wait(cn.life); err != nil {
		return errNotLoaded // its process is gone
	}
	return p.emit(cn, c, e)
}

// requested publishes a request of a skill, and answers when its answer is there.
func (p *Plugin) requested(cn *conn, c plugin.Context, m *jsonrpc.Message) {
	var r RequestParams
	err := params(m, &r)
	switch {
	case err != nil:
	case c == nil:
		err = errNotLoaded
	case m.ID == nil:
		err = errors.New("it is not a request: it has no id")
	default:
		_, _, err = p.allowed(cn, r.Kind, r.SessionID, r.Payload)
	}
	if err != nil {
		p.answer(cn, m, nil, err)
		return
	}
	select {
	case cn.room <- struct{}{}:
	default:
		p.answer(cn, m, nil, &jsonrpc.Error{Code: CodeBusy, Message: fmt.Sprintf("%d requests wait for their answer", MaxPending)})
		return
	}
	wait := RequestTime
	if r.TimeoutMS > 0 {
		wait = min(time.Duration(min(r.TimeoutMS, MaxRequest.Milliseconds()))*time.Millisecond, MaxRequest)
	}
	id := bytes.Clone(m.ID)
	cn.work.Go(func() {
		defer func() { <-cn.room }()
		ctx, cancel := context.WithTimeout(cn.life, wait)
		defer cancel()
		ev, err := c.Request(ctx, r.Kind, r.SessionID, r.Payload)
		switch {
		case err == nil:
			cn.reply(id, struct {
				Event event.Event `json:"event"`
			}{ev}, nil)
		case errors.Is(err, bus.ErrRefused), errors.Is(err, plugin.ErrCategory):
			cn.reply(id, nil, &jsonrpc.Error{Code: CodeRefused, Message: err.Error()})
		case ctx.Err() != nil:
			cn.reply(id, nil, &jsonrpc.Error{Code: CodeTimeout, Message: fmt.Sprintf("no answer to %s within %v", r.Kind, wait)})
		default:
			cn.reply(id, nil, &jsonrpc.Error{Code: CodeFailed, Message: err.Error()})
		}
	})
}

// progress reports progress of a running call.
func (c *conn) progress(g ProgressParams) {
	c.mu.Lock()
	report := c.calls[g.ID]
	c.mu.Unlock()
	if report != nil {
		report(g)
	}
}

// log implements [incoming]: it writes a line of the plugin, or about it, to the log.
func (p *Plugin) log(level, text string) {
	p.mu.Lock()
	c := p.c
	if c == nil {
		p.mu.Unlock()
		return
	}
	if !p.logs.Allow() {
		p.silenced++
		p.mu.Unlock()
		return
	}
	dropped := p.silenced
	p.silenced = 0
	p.mu.Unlock()
	if dropped > 0 {
		c.Log().Warn().Msg(worded.Count(dropped, "line of the plugin was dropped", "lines of the plugin were dropped"))
	}
	at, err := zerolog.ParseLevel(level)
	if err != nil || at < zerolog.DebugLevel || at > zerolog.ErrorLevel {
		at = zerolog.InfoLevel
	}
	c.Log().WithLevel(at).Msg(c.Secrets().ConcealString(cut.Text(strings.ToValidUTF8(text, "�"), MaxLogText)))
}

// settings returns the settings that the plugin may see.
func (p *Plugin) settings(c plugin.Context) Settings {
	d := &p.cfg.Description
	out := Settings{Config: map[string]json.RawMessage{}}
	for _, field := range d.fields() {
		if config.IsSecret(field) && !slices.Contains(d.Permissions.Secrets, field) {
			continue
		}
		if v := c.Config(field); v != nil {
			out.Config[field] = v
		}
	}
	if plugin.Category(d.Category) != plugin.LLMProvider {
		return out
	}
	out.Providers = []Instance{}
	for _, i := range c.Providers().InstancesForPlugin(d.Name) {
		for field, v := range i.Config {
			if (config.IsSecret(field) || bytes.Contains(v, []byte("${secret:"))) && !slices.Contains(d.Permissions.Secrets, field) {
				delete(i.Config, field)
			}
		}
		i = c.Providers().Reveal(i)
		if i.Missing != nil {
			p.log("error", i.Missing.Error())
		}
		out.Providers = append(out.Providers, Instance{ID: i.ID, Label: i.Label, Config: i.Config})
	}
	return out
}

func oneLine(s string) string { return cut.Line(strings.ToValidUTF8(s, "�"), 300) }
