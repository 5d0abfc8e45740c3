package daemon

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/certs"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// doctor asks every plugin how it is, and looks at what concerns none of them. Its methods
// are safe for concurrent use.
type doctor struct {
	bridge       *bridge
	certificates func() []certs.Status // nil for a listener without TLS
	configured   func() []servers.Server

	mu     sync.Mutex
	uplink func() plugin.Diagnosis // nil without one

	asked  sync.Mutex // guards what the plugins have told readiness
	told   []plugin.Diagnosis
	toldAt time.Time
}

// onUplink has the doctor ask how the connection with the gateway elsewhere is.
func (d *doctor) onUplink(f func() plugin.Diagnosis) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uplink = f
}

// examine asks, and waits for each at most that long.
func (d *doctor) examine(ctx context.Context, timeout time.Duration) []plugin.Diagnosis {
	k, st := d.bridge.core.kernel, d.bridge.core.st
	ds := k.Plugins.Doctor(ctx, timeout)
	ds = append(ds, diagnosis(checkStorage, "the data directory takes writes, and changes are recorded", append(d.bridge.core.st.disk.try(ctx), d.logCheck())), filesDiagnosis())
	for _, err := range unreadable(k.Settings, st.self.listens) {
		ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Failing, Summary: err.Error()}})
	}
	if os.Geteuid() == 0 {
		ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: asRoot}})
	}
	if linked, is := st.linkedDiagnosis(); is {
		ds = append(ds, linked)
	}
	if log, is := st.at.logs.diagnosis(k.Settings); is {
		ds = append(ds, log)
	}
	for _, x := range d.configured() {
		if open := x.OpenSecrets(); open != "" {
			ds = append(ds, plugin.Diagnosis{Plugin: "secrets", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: fmt.Sprintf("server %q: %s", x.Name, open)}})
		}
	}
	if d.certificates != nil {
		ds = append(ds, plugin.Diagnosis{Plugin: "certificates", HealthReport: certificateHealth(d.certificates(), time.Now())})
	}
	d.mu.Lock()
	uplink := d.uplink
	d.mu.Unlock()
	if uplink != nil {
		ds = append(ds, uplink())
	}
	if x, sealed := secretsDiagnosis(ctx, st.at.vault, timeout); sealed {
		ds = append(ds, x)
	}
	return append(ds, sandboxDiagnosis(st.sandboxes.Standing(), d.bridge.serverPrograms()))
}

// WithDoctor runs f with the daemon, or with everything that a daemon has: what does not
// run cannot be asked how it is.
func WithDoctor(ctx context.Context, g *Flags, f func(*Backend) error) error {
	return withAdmin(ctx, g, AppOptions{Agents: true, Log: zerolog.Nop(), lenient: true}, f)
}
