package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
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

// examine asks, and waits for each at most that long. A folder is that of who asks, "" for none.
func (d *doctor) examine(ctx context.Context, timeout time.Duration, folder string) []plugin.Diagnosis {
	timeout = cmp.Or(timeout, plugin.DefaultCheckTimeout)
	disk := d.bridge.core.st.disk
	d.mu.Lock()
	uplink := d.uplink
	d.mu.Unlock()
	// Side by side: if the disk does not answer, all of them end after one timeout.
	checks := d.checks(ctx, timeout)
	if folder != "" {
		checks = append(checks, inspection{"agent-tool", "sub-agents of " + folder, func() []plugin.Diagnosis { return d.bridge.core.agentsOf(folder) }})
	}
	out := make([][]plugin.Diagnosis, len(checks)+2)
	var wg sync.WaitGroup
	wg.Go(func() { out[0] = d.bridge.core.kernel.Plugins.Doctor(ctx, timeout) })
	wg.Go(func() {
		storage := append(disk.try(ctx), disk.check(ctx, checkLog, timeout, d.logCheck))
		out[1] = []plugin.Diagnosis{diagnosis(checkStorage, "the data directory takes writes, and changes are recorded", storage), filesDiagnosis()}
	})
	for i, c := range checks {
		wg.Go(func() { out[i+2] = disk.rows(ctx, c.part, c.name, timeout, c.look) })
	}
	wg.Wait()
	ds := slices.Concat(out...)
	if runtime.GOOS == "windows" {
		ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: onWindows}})
	}
	if os.Geteuid() == 0 {
		ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: asRoot}})
	}
	if unsent, is := d.bridge.core.unsentDiagnosis(); is {
		ds = append(ds, unsent)
	}
	if words, is := d.bridge.embeddingsDiagnosis(); is {
		ds = append(ds, words)
	}
	if uplink != nil {
		ds = append(ds, uplink())
	}
	return ds
}

// onWindows says what yaya has not on Windows.
const onWindows = "there is no sandbox on Windows, so servers run with all rights of your user; the tools shell and verify, yaya restart and yaya service do not work there either: for these, run yaya in WSL 2"

// inspection is a check of doctor that looks at files, and so may hang with their disk.
type inspection struct {
	part, name string
	look       func() []plugin.Diagnosis
}

func (d *doctor) checks(ctx context.Context, timeout time.Duration) []inspection {
	k, st := d.bridge.core.kernel, d.bridge.core.st
	some := func(x plugin.Diagnosis, is bool) []plugin.Diagnosis {
		if !is {
			return nil
		}
		return []plugin.Diagnosis{x}
	}
	ctx = context.WithoutCancel(ctx) // others may wait for the same check
	checks := []inspection{
		{"yaya", "settings", func() (ds []plugin.Diagnosis) {
			for _, err := range unreadable(k.Settings, st.self.listens) {
				ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Failing, Summary: err.Error()}})
			}
			return ds
		}},
		{"models", "models that settings name", func() (ds []plugin.Diagnosis) {
			for _, err := range k.Misnamed() {
				ds = append(ds, plugin.Diagnosis{Plugin: "models", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: err.Error()}})
			}
			return ds
		}},
		{"strategy", "the setting strategy", func() []plugin.Diagnosis {
			id := k.Settings.Text("strategy")
			return some(plugin.Diagnosis{Plugin: "strategy", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: fmt.Sprintf("setting strategy: %v", noStrategy(id))}}, !k.Plugins.HasStrategy(id))
		}},
		{"yaya", "links to own files", func() []plugin.Diagnosis { return some(st.linkedDiagnosis()) }},
		{"log", "log file", func() []plugin.Diagnosis { return some(st.at.logs.diagnosis(k.Settings)) }},
		{"secrets", "secrets in command lines", func() (ds []plugin.Diagnosis) {
			for _, x := range d.configured() {
				if open := x.OpenSecrets(); open != "" {
					ds = append(ds, plugin.Diagnosis{Plugin: "secrets", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: fmt.Sprintf("server %q: %s", x.Name, open)}})
				}
			}
			return ds
		}},
		{"secrets", "stored secrets", func() []plugin.Diagnosis { return some(secretsDiagnosis(ctx, st.at.vault, timeout)) }},
		{"hooks", "hooks", func() []plugin.Diagnosis { return some(d.bridge.core.hooksDiagnosis()) }},
		{"sandbox", "sandbox", func() []plugin.Diagnosis {
			return []plugin.Diagnosis{sandboxDiagnosis(st.sandboxes.Standing(), d.bridge.serverPrograms())}
		}},
	}
	if d.certificates != nil {
		checks = append(checks, inspection{"certificates", "certificates", func() []plugin.Diagnosis {
			return []plugin.Diagnosis{{Plugin: "certificates", HealthReport: certificateHealth(d.certificates(), time.Now())}}
		}})
	}
	return checks
}

// WithDoctor runs f with the daemon, or with everything that a daemon has: what does not
// run cannot be asked how it is.
func WithDoctor(ctx context.Context, g *Flags, f func(*Backend) error) error {
	p, err := g.Paths()
	if err == nil {
		err = p.Answers(ctx)
	}
	if err != nil {
		return err
	}
	return withAdmin(ctx, g, AppOptions{Agents: true, Log: zerolog.Nop(), lenient: true}, f)
}
