package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	neturl "net/url"
	"time"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// attach makes a kernel one of a gateway elsewhere, or does nothing if url is "". It reports
// there what becomes of its agents; reports wait while the gateway cannot be reached. d asks how the connection is.
func attach(url string, c *core, d *doctor) (detach func(), err error) {
	data, controlPlane, log := c.st.at.data, c.st.controlPlane, c.st.at.log
	if url == "" {
		return func() {}, nil
	}
	load := func() (client.Credentials, error) {
		creds, err := LoadRemote(data, RemoteFile(url))
		if errors.Is(err, fs.ErrNotExist) {
			return creds, fmt.Errorf("this machine is not a device of %s: yaya connect %s (%w)", url, url, fs.ErrNotExist)
		}
		return creds, err
	}
	creds, err := load()
	if err != nil {
		return nil, err
	}
	address, err := neturl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("--upstream: %w", err)
	}
	// The names that a gateway gives its users are its own: here they are that
	// gateway's, and nobody that this kernel knows.
	forward := func(ctx context.Context, actor, skill string, payload json.RawMessage) (json.RawMessage, error) {
		return c.invoke(ctx, tool.Caller{Principal: tool.GatewayPrefix + address.Host + "/" + actor}, skill, payload)
	}
	up := client.Attach(client.UplinkConfig{
		Options:  client.Options{Credentials: creds, Load: load, Save: func(fresh client.Credentials) error { return SaveRemote(data, fresh) }},
		KernelID: controlPlane.kernel, Heartbeat: controlPlane.plane.Heartbeat, Skills: c.exports, Invoke: forward, Log: log,
		OnKill: func(id, _ string) { c.kernel.Loop.Cancel(id) },
	})
	d.onUplink(func() plugin.Diagnosis { return upstreamDiagnosis(url, up.State()) })
	c.metrics.Gauge("yaya_upstream_connected", "Whether this kernel is attached to its gateway.", func() float64 {
		if up.Connected() {
			return 1
		}
		return 0
	})
	c.metrics.Gauge("yaya_upstream_queued", "Changes of agents and skills that wait for the gateway.", func() float64 { return float64(up.Stats().Queued) })
	c.metrics.Gauge("yaya_upstream_evicted", "Changes of agents and skills that were given up, since the start.", func() float64 { return float64(up.Stats().Evicted) })
	ctx, cancel := context.WithCancel(context.Background())
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		controlPlane.plane.Report(ctx, up)
	}()
	return func() {
		cancel()
		<-reported
		up.Close()
	}, nil
}

// upstreamDiagnosis says how a kernel's connection with its gateway is: failing when no
// further attempt can succeed before somebody has done something.
func upstreamDiagnosis(url string, s client.UplinkState) plugin.Diagnosis {
	d := plugin.Diagnosis{Plugin: "upstream"}
	since := s.Since.Local().Format(time.DateTime)
	switch {
	case s.Connected:
		d.Status, d.Summary = plugin.Healthy, fmt.Sprintf("attached to %s since %s", url, since)
	case s.Reason == nil:
		d.Status, d.Summary = plugin.Degraded, fmt.Sprintf("connecting to %s", url)
	default:
		d.Status, d.Summary = plugin.Degraded, fmt.Sprintf("not attached to %s since %s, in local-only mode; it is tried again within a minute", url, since)
		why := s.Reason.Error()
		if s.Refused {
			d.Status, why = plugin.Failing, why+"\n"+s.Remedy
		}
		d.Details = []plugin.HealthCheck{{Name: "upstream", Status: d.Status, Message: why}}
	}
	return d
}
