package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/daemon/datadir"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/unread"
	"github.com/yaya-ai/yaya/kernel/session"
)

// restarted is the entry about a log that begins again, which the next start writes to the audit.
type restarted struct {
	Folder string `json:"folder"` // of the former log and its keys
	Reason string `json:"reason"`
}

// controlProblem returns what is damaged of the control log or its keys, "" if nothing is,
// and what of them cannot be read: nobody knows then what else is damaged.
func controlProblem(data *os.Root) (damaged string, unreadable []session.Finding) {
	_, findings, _, err := VerifyControl(data)
	if err == nil {
		err = datadir.CheckKeys(data)
	}
	if unread.Is(err) {
		findings = append(findings, session.FindingOf(unreadFile(data, err), err))
	} else if err != nil {
		damaged = err.Error()
	}
	for _, f := range findings {
		switch {
		case f.Unread:
			unreadable = append(unreadable, f)
		case f.Damaged && damaged == "":
			damaged = f.File + ": " + f.Problem
		}
	}
	return damaged, unreadable
}

// addControl adds to the report of a repair what is damaged of the control log. It mends the
// snapshot alone, which yaya can make again.
func addControl(data *os.Root, r *datadir.Report) error {
	_, findings, _, err := VerifyControl(data)
	if err != nil {
		return err
	}
	r.Folder = cmp.Or(r.Folder, datadir.NewReport().Folder) // which a report of nothing lacks
	for _, f := range findings {
		switch {
		case !f.Bad() || slices.ContainsFunc(r.Left, func(l session.Finding) bool { return l.File == f.File }):
		case f.File == local.StateFile && !f.Unread:
			aside := path.Join(r.Folder, f.File)
			if err := journal.SetAside(journal.Root(data), f.File, aside); err != nil {
				return err
			}
			r.Mended = append(r.Mended, datadir.Mended{File: f.File, Reason: f.Problem, Aside: aside, Lost: "nothing: the next start reads the whole log, and writes another"})
		default:
			r.Left = append(r.Left, f)
		}
	}
	return r.Write(data)
}

// RepairControl has the control log begin again, if it or one of its keys is damaged, and all
// of them can be read. It is
// not cut: the entries behind the damage may have revoked devices, and these would come
// back. The log and all keys are moved away, so the earlier devices, tokens and keys are invalid.
func (g *Flags) RepairControl(context.Context) (r datadir.Report, err error) {
	err = g.holdingData(func(_ Paths, data *os.Root) error {
		r, err = repairControl(data)
		return err
	})
	return r, err
}

func repairControl(data *os.Root) (r datadir.Report, err error) {
	r = datadir.NewReport()
	problem, left := controlProblem(data)
	if r.Left = left; problem == "" || len(left) > 0 {
		r.Folder = ""
		return r, nil
	}
	if node, err := nodeIn(data); err != nil || node != nil {
		if err == nil {
			err = repairCopy(data, &r, problem)
		}
		return r, err
	}
	// The note first: after a crash in between, the next repair finds damage again.
	if err := tellLater(data, restartedFile, restarted{r.Folder, Printable(problem, 600)}); err != nil {
		return r, err
	}
	fsys := journal.Root(data)
	for _, dir := range []string{"keys", "control"} { // without its log, a key is refused
		entries, err := fs.ReadDir(data.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if dir == "keys" && (e.IsDir() || !strings.HasSuffix(name, ".key") && !strings.HasPrefix(name, "keys/audit.")) {
				continue // the key of --tls-self-signed, and credentials at others
			}
			aside := path.Join(r.Folder, name)
			if err := journal.SetAside(fsys, name, aside); err != nil {
				return r, fmt.Errorf("repair the control log: %w", err)
			}
			m := datadir.Mended{File: name, Reason: "it goes with the damaged log", Aside: aside, Lost: "see above"}
			if len(r.Mended) == 0 {
				m.Reason, m.Lost = problem, "all devices, tokens and agents: enroll every device and make every token again; the earlier audit is kept there"
			}
			r.Mended = append(r.Mended, m)
		}
	}
	return r, r.Write(data)
}

// nodeIn returns the node that a data directory makes a yaya, nil if it is alone.
func nodeIn(data *os.Root) (_ *nodes.Node, err error) {
	keys, err := data.OpenRoot("keys")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // alone
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	node, err := nodes.Read(keys)
	if err != nil || node == nil {
		return nil, err
	}
	if !holds(keys, auth.ServerKeyFile) {
		return nil, fmt.Errorf("the key keys/%s of this node is missing: restore it from a backup; or remove the node (yaya cluster remove), move the folder keys out of the data directory, and have it join again", auth.ServerKeyFile)
	}
	return node, nil
}

// repairCopy moves the log of a node aside, which the cluster has.
func repairCopy(data *os.Root, r *datadir.Report, problem string) error {
	folder := path.Dir(local.File)
	entries, err := fs.ReadDir(data.FS(), folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		aside := path.Join(r.Folder, name)
		if err := journal.SetAside(journal.Root(data), name, aside); err != nil {
			return fmt.Errorf("repair the control log: %w", err)
		}
		r.Mended = append(r.Mended, datadir.Mended{File: name, Reason: problem, Aside: aside, Lost: "nothing: the next start fetches the log from the cluster"})
	}
	return r.Write(data)
}

// withRemedy adds what to do to an error about a control log or a key that is damaged.
func withRemedy(data *os.Root, err error) error {
	if err == nil || strings.Contains(err.Error(), "yaya repair") {
		return err
	}
	if damaged, unreadable := controlProblem(data); damaged == "" || len(unreadable) > 0 {
		return err
	}
	return fmt.Errorf("%w; %s", err, datadir.RemedyKeys)
}
