package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// The settings of all commands, in addition to those of the workspace.
const (
	hostsKey = "sandbox.command.hosts"
	writeKey = "sandbox.command.write"
)

// use is the purpose of a sandbox.
type use struct {
	profile string // "" is outside every sandbox
	// require are the needs without which nothing runs.
	require sandbox.Need
	reads   bool          // it does not write in the workspace
	limit   time.Duration // limit after which the sandbox's kernel side ends it, too; 0 for no limit
}

// CheckNeeds are the needs without which checks do not run.
const CheckNeeds = sandbox.NeedHidden | sandbox.NeedWrites | sandbox.NeedNetwork | sandbox.NeedKernel

var (
	asCommand = use{profile: "command"}
	asDrawing = use{profile: "check"}
	asCheck   = use{profile: "check", limit: maxTimeout, require: CheckNeeds}
	outside   = use{}
)

// slack is the time that a sandbox gives a command beyond its limit, so that yaya ends it first
// and reports that.
const slack = 15 * time.Second

// shownBox is the description of a sandbox for people.
type shownBox struct {
	Sandbox string   `json:"sandbox"`
	Hosts   []string `json:"hosts,omitempty"` // of the settings
	Write   []string `json:"write,omitempty"` // of the settings
	// Repository is the Git repository of a linked work tree; a commit writes there.
	Repository string   `json:"repository,omitempty"`
	Weaker     []string `json:"weaker,omitempty"`
}

// box is the sandbox of a call, as shown.
type box struct {
	use
	shown shownBox
	// bound contains all properties of the sandbox: if it differs, the sandbox is not the shown
	// one.
	bound string
	none  bool // nothing is enforced
	// recorded is its description in the record of an approval.
	recorded string
	// lacks are the wanted needs that are not enforced.
	lacks sandbox.Need
	// memory bounds the memory of each process, in bytes; 0 means the profile's limit.
	memory int64
	// roots are the writable folders in which somebody may run Git.
	roots []string
}

// weak are the needs that a result reports if they are not met.
const weak = sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedProtect | sandbox.NeedNetwork | sandbox.NeedHosts | sandbox.NeedKernel

// enter chooses a sandbox in a workspace, and returns it for one command, or nil outside the
// sandbox. watch handles hosts, and tmp is its /tmp; both are optional.
func (p *Plugin) enter(at *place, u use, watch *reach, tmp string) (*sandbox.Run, box, error) {
	b := box{use: u, memory: p.maxMemory(), roots: []string{canonical(at.root)}}
	set := p.cfg.Sandboxes.Settings()
	if u.profile == "" {
		if err := set.Outside(); err != nil {
			return nil, b, &tool.Failure{Kind: tool.ErrRejected, Err: err}
		}
		b.shown.Sandbox = "none: it runs outside the sandbox, with all rights of your user"
		b.bound, b.recorded = b.shown.Sandbox, "outside"
		return nil, b, nil
	}
	policy, err := p.policy(at, &b)
	if err != nil {
		return nil, b, &tool.Failure{Kind: tool.ErrUnavailable, Err: fmt.Errorf("make a sandbox for the command: %w", err)}
	}
	if watch != nil && policy.Net.Mode == sandbox.Hosts {
		policy.Net.Ask, policy.Net.Denied, policy.Net.Unreached = watch.ask, watch.refused, watch.unreached
	}
	policy.Tmp = tmp
	wants := policy.Wants()
	run, err := p.cfg.Sandboxes.Enter(policy)
	if err != nil {
		return nil, b, &tool.Failure{Kind: tool.ErrUnavailable, Err: refused(err, set, u)}
	}
	e := run.Enforced
	b.recorded = fmt.Sprintf("%s (%s)", u.profile, e.Backend)
	b.lacks, b.none = wants&^e.Has, e.Backend == sandbox.None
	switch {
	case set.Mode == sandbox.Without:
		b.recorded = "off"
		b.shown.Sandbox = "off, as the setting sandbox.mode says: it runs with all rights of your user"
	case b.none:
		b.shown.Sandbox, b.shown.Weaker = "none on this machine (see: yaya sandbox)", append(e.Missing, b.shown.Weaker...)
	default:
		b.shown.Sandbox, b.shown.Weaker = fmt.Sprintf("profile %s (%s)", u.profile, e.Backend), append(e.Missing, b.shown.Weaker...)
	}
	bound, err := json.Marshal(struct {
		Shown  shownBox     `json:"shown"`
		Lacks  sandbox.Need `json:"lacks"`
		Memory int64        `json:"memory"`
	}{b.shown, b.lacks, b.memory})
	if err != nil {
		run.Ended()
		return nil, b, err
	}
	b.bound = string(bound)
	return run, b, nil
}

// CheckPolicy returns the part of the checks' policy that is the same in every workspace.
func CheckPolicy() (sandbox.Policy, error) {
	p, err := sandbox.Profile(asCheck.profile)
	p.Require = asCheck.require
	return p, err
}

// refused adds the remedy to the error about a sandbox that cannot be created.
func refused(err error, set sandbox.Settings, u use) error {
	r, refused := errors.AsType[*sandbox.RefusedError](err)
	switch {
	case refused && r.Prefer != "":
		return err // the error contains the remedy
	case refused && u.require != 0:
		return fmt.Errorf("%w; the tool shell runs it with what is enforced here; to have checks run without a sandbox, with all rights of your user: %s", err, set.SetMode(sandbox.Without))
	}
	return fmt.Errorf("make a sandbox for the command: %w", err)
}

// policy returns the policy of commands in a workspace.
func (p *Plugin) policy(at *place, b *box) (sandbox.Policy, error) {
	root := canonical(at.root)
	sum := sha256.Sum256([]byte(root))
	policy, err := p.cfg.Sandboxes.Policy(b.profile, fmt.Sprintf("workspace-%x", sum[:12]))
	if err != nil {
		return policy, err
	}
	policy.Require = b.require
	policy.Hide = append(policy.Hide, p.cfg.Sandboxes.Cache) // except its own
	if b.memory > 0 {
		policy.Limits.Memory = b.memory
	}
	if b.limit > 0 {
		policy.Limits.Time = b.limit + slack
	}
	work := &policy.Write
	if b.reads {
		var dir sandbox.Path
		dir, err = sandbox.OpenExact(root)
		policy.Read, work = append([]sandbox.Path{dir}, policy.Read...), &policy.Read
	} else {
		b.shown.Repository, err = policy.Work(root)
	}
	if err != nil {
		return policy, err
	}
	if top, err := at.w.Root().Stat("."); err != nil || !(*work)[0].Is(top) {
		return policy, errors.Join(changed("the folder "+at.root+" was replaced"), err, sandbox.Close(policy.Write), sandbox.Close(policy.Partly), sandbox.Close(policy.Protect))
	}
	if b.shown.Repository != "" {
		b.roots = append(b.roots, b.shown.Repository)
	}
	if b.reads {
		return policy, nil
	}
	b.shown.Write = p.cfg.Write()
	for _, dir := range b.shown.Write {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(p.cfg.Sandboxes.Home, rest)
		}
		if !filepath.IsAbs(dir) {
			err = fmt.Errorf("%s: %s does not begin with / or ~/", writeKey, dir)
		}
		if err == nil {
			err = sandbox.NotWhole(dir)
		}
		var write, protect []sandbox.Path
		if err == nil {
			// An earlier command may have created a link.
			write, protect, err = sandbox.Workspace(sandbox.Plain(p.cfg.Sandboxes.Home, dir))
		}
		for _, w := range write {
			b.roots = append(b.roots, w.String())
		}
		policy.Write, policy.Protect = append(policy.Write, write...), append(policy.Protect, protect...)
		if err != nil {
			return policy, errors.Join(fmt.Errorf("%s: %w", writeKey, err), sandbox.Close(policy.Write), sandbox.Close(policy.Partly), sandbox.Close(policy.Protect))
		}
	}
	if policy.Net.Mode == sandbox.Hosts {
		b.shown.Hosts = p.cfg.Hosts()
		policy.Net.Allow = slices.Concat(policy.Net.Allow, b.shown.Hosts)
	}
	if p.cfg.OwnParts != nil && b.profile == asCommand.profile {
		for _, dir := range p.cfg.OwnParts() {
			if at, err := sandbox.OpenExact(dir); err == nil { // otherwise there is nothing to show
				policy.Read, policy.OwnParts = append(policy.Read, at), append(policy.OwnParts, at.String())
			}
		}
	}
	return policy, nil
}

// weaker returns the line of a result that lists the needs that were not enforced, "" if there
// are none, or if the user decided so.
func (b *box) weaker() string {
	switch missing := b.lacks & weak; {
	case len(b.shown.Weaker) == 0 || missing == 0:
		return ""
	case b.none:
		return "[not in a sandbox: there is none on this machine (see: yaya sandbox)]"
	default:
		return fmt.Sprintf("[in a weaker sandbox: %s (see: yaya sandbox)]", missing.Lacking())
	}
}
