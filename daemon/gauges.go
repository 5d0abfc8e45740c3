package daemon

import (
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// gauges registers the metrics besides those of calls.
func (f *front) gauges() {
	b, m := f.bridge, f.bridge.core.metrics
	if certificates := f.in.source.status; certificates != nil {
		m.Gauge("yaya_certificate_expiry_timestamp_seconds", "When the first certificate of the listener ends, in Unix time; 0 while a name has none.", func() float64 { return certificateGauge(certificates()) })
	}
	m.Gauge("yaya_mcp_sessions", "Sessions of MCP clients.", func() float64 { return float64(b.down.Sessions()) })
	m.Gauge("yaya_mcp_servers_ready", "Connected MCP servers that work.", func() float64 {
		n := 0
		for _, s := range b.host.Status() {
			if s.State.Usable() {
				n++
			}
		}
		return float64(n)
	})
	m.GaugesOf("server", b.ofServers,
		gateway.Gauge{Name: "yaya_mcp_server_up", Help: "1 while an MCP server can be called."},
		gateway.Gauge{Name: "yaya_mcp_server_in_flight", Help: "Calls that an MCP server works on."},
		gateway.Gauge{Name: "yaya_mcp_server_waiting", Help: "Calls that wait for a free place at an MCP server."},
		gateway.Gauge{Name: "yaya_mcp_server_breaker_open", Help: "1 while yaya sends an MCP server no calls: it did not answer the last ones, or asked for a pause."})
	b.core.sandboxGauges()
	b.core.stored(m)
}

// ofServers reads the gauges of each server, in their order.
func (b *bridge) ofServers() map[string][]float64 {
	number := func(set bool) float64 {
		if set {
			return 1
		}
		return 0
	}
	out := map[string][]float64{}
	for _, s := range b.host.Status() {
		d, _ := s.Detail.(upstream.Detail) // other providers have no queue
		out[s.ID] = []float64{number(s.State.Usable()), float64(d.InFlight), float64(d.Waiting), number(d.Open)}
	}
	return out
}

// stored registers the gauges of files on the disk.
func (c *core) stored(m *gateway.Metrics) {
	st := c.st
	m.Gauge("yaya_messages_queued", "Messages that wait for the turn of their session to end.", func() float64 { return float64(c.kernel.Sessions.Queued()) })
	m.Gauge("yaya_disk_free_bytes", "Bytes that yaya can still write to the disk of its data directory; -1 if unknown.", func() float64 {
		return float64(st.disk.free().Bytes)
	})
	m.Gauge("yaya_disk_free_inodes", "Files that the disk of yaya's data directory can still take; -1 if unknown, or without a fixed number.", func() float64 {
		return float64(st.disk.free().Files)
	})
	m.Gauge("yaya_control_writable", "1 while the control log can be written.", func() float64 {
		if st.controlPlane == nil || !st.controlPlane.log.State().Quorum {
			return 0
		}
		return 1
	})
	m.Counters("yaya_traffic_lost_total", "Calls that the record of calls has lost, by reason; bare ones have no arguments and results.", "reason", func() map[string]float64 {
		l := st.record.log.Lost()
		return map[string]float64{"busy": float64(l.Busy), "failed": float64(l.Failed), "bare": float64(l.Bare)}
	})
	m.Counter("yaya_traffic_recorded_total", "Calls that the record of calls has taken.", func() float64 { return float64(st.record.log.Taken()) })
}
