package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/openfiles"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/mcpbridge"
)

// Names of checks.
const (
	checkDisk    = "disk"
	checkStorage = "storage"
	checkLog     = "control-log"
	checkServers = "servers"
	checkFiles   = "open-files"

	checkTelemetry = "telemetry"
	checkSearch    = "tool-search"
)

const (
	// probeFile is written, synced and removed. A crash may leave it; the next probe replaces it.
	probeFile = ".probe"
	probeSize = 4096
	// probeTimeout is how long a check waits for the disk.
	probeTimeout = 2 * time.Second
	// fewFiles is the number of free inodes below which the disk is degraded.
	fewFiles = 1024
	// probeKept is how long the answer of the disk is good: everybody may ask.
	probeKept = time.Second
)

// disk tries whether the data directory can be written to: it writes a file there and syncs it. All
// who ask at the same time share one try. Its methods are safe for concurrent use.
type disk struct {
	fs   journal.FS
	data *os.Root
	work workgroup.Group

	mu    sync.Mutex
	last  *tried
	looks map[string]*look // under way, by name
}

// tried is one try of the disk. done is closed when it ended; then the rest is there.
type tried struct {
	done   chan struct{}
	at     time.Time // when it ended
	checks []plugin.HealthCheck
}

func newDisk(data *os.Root) *disk { return &disk{fs: journal.Root(data), data: data} }

// close waits for a try that is under way, until ctx ends: one that hangs in the system cannot be
// ended.
func (d *disk) close(ctx context.Context) error {
	if err := d.work.CloseWithin(ctx); err != nil {
		return fmt.Errorf("the disk of the data directory does not answer: %w", err)
	}
	return nil
}

// try returns how the disk is: its free space against what yaya keeps, and whether a write reaches
// it.
func (d *disk) try(ctx context.Context) []plugin.HealthCheck {
	d.mu.Lock()
	t := d.last
	if t == nil || t.ended() && time.Since(t.at) >= probeKept {
		t = &tried{done: make(chan struct{})}
		if !d.work.Go(func() {
			t.checks = []plugin.HealthCheck{d.space(), d.probe()}
			t.at = time.Now()
			close(t.done)
		}) {
			d.mu.Unlock()
			return []plugin.HealthCheck{{Name: checkStorage, Status: plugin.Failing, Message: "yaya is stopping"}}
		}
		d.last = t
	}
	d.mu.Unlock()
	late := time.NewTimer(probeTimeout)
	defer late.Stop()
	select {
	case <-t.done:
		return t.checks
	case <-late.C:
	case <-ctx.Done():
	}
	return []plugin.HealthCheck{{Name: checkStorage, Status: plugin.Failing, Message: fmt.Sprintf("the disk of the data directory did not take a write of %d bytes within %v", probeSize, probeTimeout)}}
}

func (t *tried) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// space compares the free space with what new messages need.
func (d *disk) space() plugin.HealthCheck {
	space, err := d.fs.Free()
	free := space.Bytes
	switch {
	case err != nil:
		return plugin.HealthCheck{Name: checkDisk, Status: plugin.Failing, Message: "the free space of the data directory is not known: " + plain(err)}
	case free < session.MinFree:
		return plugin.HealthCheck{Name: checkDisk, Status: plugin.Failing, Message: fmt.Sprintf("the disk of the data directory has %d MiB free, and yaya takes no message with less than %d MiB: free some space", free>>20, int64(session.MinFree)>>20)}
	case space.Files >= 0 && space.Files < fewFiles: // whether one can be made, the probe says
		return plugin.HealthCheck{Name: checkDisk, Status: plugin.Degraded, Message: fmt.Sprintf("the disk of the data directory has room for %s only (free inodes), and refuses new ones then, however many bytes are free: remove files there", worded.Count(int(space.Files), "more file", "more files"))}
	}
	return plugin.HealthCheck{Name: checkDisk, Status: plugin.Healthy, Message: fmt.Sprintf("%d MiB are free", free>>20)}
}

// probe writes a file and syncs it.
func (d *disk) probe() plugin.HealthCheck {
	begun := time.Now()
	f, err := d.data.OpenFile(probeFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(make([]byte, probeSize))
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close(), d.data.Remove(probeFile))
	}
	if err != nil {
		why := plain(err)
		if space, ferr := d.fs.Free(); errors.Is(err, errnos.NoSpace) && ferr == nil && space.Files == 0 {
			why = "its file system has no free inode, and takes no new file, though bytes may be free: remove files there"
		}
		return plugin.HealthCheck{Name: checkStorage, Status: plugin.Failing, Message: "the data directory cannot be written to: " + why}
	}
	return plugin.HealthCheck{Name: checkStorage, Status: plugin.Healthy, Message: fmt.Sprintf("a write is on the disk after %v", time.Since(begun).Round(100*time.Microsecond))}
}

// plain returns the cause of an error without paths: everybody may ask for it.
func plain(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// diagnosis makes one row of doctor of checks.
func diagnosis(name, fine string, checks []plugin.HealthCheck) plugin.Diagnosis {
	h := plugin.HealthReport{Status: plugin.Healthy, Summary: fine}
	for _, c := range checks {
		if c.Status != plugin.Healthy {
			h.Status, h.Summary = c.Status, c.Message
		}
		h.Details = append(h.Details, c)
	}
	return plugin.Diagnosis{Plugin: name, HealthReport: h}
}

// filesDiagnosis says whether this process may have enough files open.
func filesDiagnosis() plugin.Diagnosis {
	limit := openfiles.Limit()
	if w := openfiles.Warning(limit); w != "" {
		return plugin.Diagnosis{Plugin: checkFiles, HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: w}}
	}
	return plugin.Diagnosis{Plugin: checkFiles, HealthReport: plugin.HealthReport{Status: plugin.Healthy, Summary: fmt.Sprintf("yaya may have %d files open", limit)}}
}

// logCheck says whether the control log takes changes.
func (d *doctor) logCheck() plugin.HealthCheck {
	if log := d.bridge.core.st.controlPlane; log != nil && !log.log.State().Quorum {
		return plugin.HealthCheck{Name: checkLog, Status: plugin.Failing, Message: "the control log cannot be written"}
	}
	return plugin.HealthCheck{Name: checkLog, Status: plugin.Healthy}
}

// parts returns the state of the plugins, which is at most [probeKept] old.
func (d *doctor) parts(ctx context.Context) []plugin.Diagnosis {
	d.asked.Lock()
	defer d.asked.Unlock()
	if d.told == nil || time.Since(d.toldAt) >= probeKept {
		d.told = d.bridge.core.kernel.Plugins.Doctor(context.WithoutCancel(ctx), probeTimeout)
		d.toldAt = time.Now()
	}
	return d.told
}

// ready tries what this yaya needs. A check that failed means that it is not ready; a degraded one
// that a part does not work that others can do without. The reasons name no files, servers or
// providers: doctor does.
func (d *doctor) ready(ctx context.Context) []gateway.Check {
	servers := gateway.Check{Name: checkServers, Status: string(plugin.Healthy)}
	all := d.bridge.host.Status()
	idle := 0
	for _, s := range all {
		if s.State == feature.Failed {
			idle++
		}
	}
	switch {
	case slices.ContainsFunc(all, begins): // one that installs keeps nobody waiting
		return []gateway.Check{{Name: checkServers, Status: string(plugin.Failing), Reason: "servers are starting"}}
	case idle > 0:
		servers.Status, servers.Reason = string(plugin.Degraded), fmt.Sprintf("%d of %s failed (yaya doctor)", idle, worded.Count(len(all), "server", "servers"))
	}
	var out []gateway.Check
	disk := d.bridge.core.st.disk
	for _, c := range append(disk.try(ctx), disk.check(ctx, checkLog, probeTimeout, d.logCheck)) {
		check := gateway.Check{Name: c.Name, Status: string(c.Status)}
		if c.Status != plugin.Healthy {
			check.Reason = c.Message
		}
		out = append(out, check)
	}
	if n := d.bridge.core.st.cluster(); n != nil {
		out = n.asNode(ctx, out)
	}
	out = append(out, servers)
	if _, is := d.bridge.core.unsentDiagnosis(); is {
		out = append(out, gateway.Check{Name: checkTelemetry, Status: string(plugin.Degraded), Reason: "no telemetry is sent (yaya doctor)"})
	}
	if _, is := d.bridge.embeddingsDiagnosis(); is {
		out = append(out, gateway.Check{Name: checkSearch, Status: string(plugin.Degraded), Reason: "tools are found by their words alone (yaya doctor)"})
	}
	for _, x := range d.parts(ctx) {
		if x.Status != plugin.Healthy && x.Plugin != mcpbridge.Name {
			out = append(out, gateway.Check{Name: x.Plugin, Status: string(plugin.Degraded), Reason: "it does not work as it should (yaya doctor)"})
		}
	}
	return out
}
