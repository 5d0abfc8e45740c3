package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

// stores is the phase of what is kept, and of what protects it: the trusted folders, what
// servers were approved with and are allowed, the record of calls, and the sandboxes of
// whatever the later phases start. Stored secrets become known.
type stores struct {
	at           *place
	controlPlane *controlPlane // nil in a process that serves nobody
	self         self
	workspace    string // of sessions that are opened without one
	outside      ownFiles
	guard        *workspace.Guard
	sandboxes    *sandbox.Sandboxes
	folders      *folder.Store
	digests      *manage.Digests // of what folders bring
	permits      *manage.Permits
	trust        *trust.Store
	record       *record
	disk         *disk
	// awaitSecrets returns when the stored secrets are known, or after a while.
	awaitSecrets func()
	endSecrets   func()
}

// holdings says what the stores are of.
type holdings struct {
	controlPlane *controlPlane // which the audit is kept by; nil for none
	listens      []string      // addresses that this yaya listens on
	workspace    string        // "" is the current folder
	outside      ownFiles
}

// openStores opens them.
func openStores(ctx context.Context, at *place, h holdings) (_ *stores, err error) {
	st := &stores{
		at: at, controlPlane: h.controlPlane, self: self{data: at.data.Name(), listens: h.listens}, workspace: h.workspace, outside: h.outside,
		digests: new(manage.Digests), permits: manage.NewPermits(at.data.Name()), trust: trust.NewStore(at.data), disk: newDisk(at.data),
	}
	if st.workspace == "" {
		if st.workspace, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("the current folder: %w", err)
		}
	}
	if st.guard, err = workspace.NewGuard(at.Own()...); err != nil {
		return nil, err
	}
	if err := st.outside.Prepare(at.log); err != nil {
		return nil, err
	}
	if err := st.outside.enlist(h.controlPlane != nil); err != nil {
		at.log.Warn().Err(err).Msg("programs in sandboxes of this user's other yayas may read files that this one runs by")
	}
	st.sandboxes = sandboxes(at.Paths, at.settings, st.outside, h.listens)
	st.folders = folders(at.data, at.settings, st.guard, st.sandboxes, st.digests)
	sealed := at.flags.sealSecrets(at.data, at.settings, at.log)
	if h.controlPlane != nil {
		st.folders.Audit(st.permits.Forgetting(h.controlPlane.trusted))
		if sealed > 0 {
			if err := h.controlPlane.sealed(sealed); err != nil {
				return nil, err
			}
		}
	}
	st.record = newRecord(at, h.controlPlane)
	st.awaitSecrets, st.endSecrets = at.flags.knowSecrets(ctx, at.log)
	return st, nil
}

// audit returns what puts a deletion into the audit, nil in a process that has none.
func (st *stores) audit() func(ctx context.Context, event, target string, payload map[string]any) error {
	if st.controlPlane == nil {
		return nil
	}
	return func(ctx context.Context, event, target string, payload map[string]any) error {
		_, err := st.controlPlane.log.Append(ctx, control.Change{Event: event, Actor: actor(ctx, st.controlPlane.kernel), Target: target, Payload: payload}, nil)
		return err
	}
}

// actor is who the audit names for what is done for ctx: whoever asked for it, or yaya
// itself.
func actor(ctx context.Context, kernel string) string {
	if auth.Established(ctx) != nil {
		return kernel
	}
	return Printable(auth.FromContext(ctx).Actor(), 100)
}

// Close writes what is not yet written, and ends the reading of secrets.
func (st *stores) Close(ctx context.Context) error {
	ctx, cancel := st.at.closing(ctx, 0)
	defer cancel()
	defer st.endSecrets()
	return errors.Join(st.record.log.Close(ctx), st.disk.close(ctx))
}
