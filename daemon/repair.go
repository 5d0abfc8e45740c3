package daemon

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/yaya-ai/yaya/daemon/datadir"
	"github.com/yaya-ai/yaya/kernel/session"
)

// VerifyData checks every file of a data directory but the control log and its keys. The
// sealed secrets are opened if their key needs nobody.
func (g *Flags) VerifyData(ctx context.Context, p Paths, data *os.Root) (files int, findings []session.Finding, err error) {
	files, findings, err = datadir.Verify(ctx, data, datadir.Options{Secrets: g.openVault(p, data).Load})
	if holds(data, formatFile) {
		files++
	}
	if _, ferr := checkFormat(data); ferr != nil {
		name := formatFile
		if holds(data, restoringFile) {
			name = restoringFile
		}
		findings = append(findings, session.FindingOf(name, ferr))
	}
	return files, findings, err
}

// RepairData mends every damaged file of the data directory but the control log and its
// keys, of which it says what is damaged. No yaya may run on it.
func (g *Flags) RepairData(ctx context.Context) (r datadir.Report, err error) {
	err = g.holdingData(func(p Paths, data *os.Root) error {
		return WithSessions(g, func(m *session.Manager) error {
			r, err = datadir.Repair(ctx, data, m, datadir.Options{Secrets: g.openVault(p, data).Load})
			if err != nil {
				return err
			}
			return addControl(data, &r)
		})
	})
	g.noteRepair(ctx, dataRepaired, "data", &r)
	return r, err
}

// noteRepair puts a repair into the audit, if anything was repaired, or into its report why
// it cannot.
func (g *Flags) noteRepair(ctx context.Context, event, target string, r *datadir.Report) {
	if len(r.Mended) == 0 {
		return
	}
	var files []string
	for _, m := range r.Mended[:min(len(r.Mended), 50)] {
		files = append(files, Printable(m.File, 200))
	}
	p, err := g.Paths()
	if err == nil {
		err = g.note(ctx, p, Note{event, target, map[string]any{"count": len(r.Mended), "left": len(r.Left), "folder": r.Folder, "files": files}})
	}
	if err != nil {
		r.Unaudited = err.Error()
	}
}

// holdingData calls f with the data directory, on which no yaya runs until f has returned.
func (g *Flags) holdingData(f func(p Paths, data *os.Root) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	release, err := p.hold()
	if err != nil {
		return err
	}
	defer release()
	data, err := p.OpenData()
	if err != nil {
		return err
	}
	return errors.Join(f(p, data), data.Close())
}

// RepairSession mends the tape of a session. A yaya may run meanwhile: it has not opened
// a damaged tape.
func (g *Flags) RepairSession(ctx context.Context, id, workspace string) (r datadir.Report, err error) {
	p, err := g.Paths()
	if err != nil {
		return r, err
	}
	data, err := p.OpenData()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	err = WithSessions(g, func(m *session.Manager) error {
		r, err = datadir.RepairSession(data, m, id, workspace)
		return err
	})
	g.noteRepair(ctx, sessionRepaired, id, &r)
	return r, err
}

// slack is by how much the time of a file may lag behind the clock.
const slack = time.Second

// tidy removes what a crash has left. It logs leftovers that cannot be removed.
func (at *place) tidy(ctx context.Context) {
	removed, err := datadir.Tidy(ctx, at.data, at.opened.Add(-slack))
	if len(removed) > 0 {
		at.log.Info().Strs("files", removed[:min(len(removed), 20)]).Int("count", len(removed)).Msg("removed what a crash had left of files that were being written")
	}
	if err != nil && ctx.Err() == nil {
		at.log.Warn().Err(err).Msg("not everything that a crash has left could be removed")
	}
}
