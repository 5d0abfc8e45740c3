package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/linelog"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Profile is the sandbox profile of plugins.
const Profile = "plugin"

// Needs are the limits without which no plugin starts: who installed it was told that it has
// these permissions and no others.
const Needs = sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedNetwork | sandbox.NeedKernel

// StateFolder is the plugin's own folder, in the one that the kernel gives it.
const StateFolder = "state"

// start starts the process and greets it.
func (p *Plugin) start(ctx context.Context, c plugin.Context) (*conn, InitializeResult, error) {
	var told InitializeResult
	if p.cfg.Verify != nil {
		if err := p.cfg.Verify(); err != nil {
			return nil, told, err
		}
	}
	above, err := c.StateDir()
	if err != nil {
		return nil, told, err
	}
	state := filepath.Join(above, StateFolder)
	if err := os.MkdirAll(state, 0o700); err != nil { //nolint:forbidigo // in the folder of this plugin
		return nil, told, fmt.Errorf("state folder of plugin %s: %w", p.cfg.Description.Name, err)
	}
	started, run, err := p.launch(state)
	if err != nil {
		return nil, told, err
	}
	cn := newConn(started, run, p)
	told, err = p.greet(ctx, c, cn, state)
	if err != nil {
		cn.kill()
		return nil, told, err
	}
	return cn, told, nil
}

// launch starts the process.
func (p *Plugin) launch(state string) (*proc.Process, *sandbox.Run, error) {
	d := &p.cfg.Description
	spec := proc.Spec{Path: d.Run[0], Args: d.Run[1:], Env: p.environ(state), Dir: p.cfg.Folder, Stderr: &linelog.Splitter{Line: func(line string) { p.log("info", line) }}}
	if strings.Contains(spec.Path, "/") {
		spec.Path = filepath.Join(p.cfg.Folder, spec.Path)
	}
	run, err := p.enter(state)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case run == nil:
	case run.Enforced.Backend == sandbox.None:
		run.Ended() // nothing is enforced, as the user's settings say
		run = nil
	default:
		spec.Sandbox = run
	}
	started, err := p.cfg.Procs.Start(spec)
	if err != nil {
		return nil, nil, err
	}
	return started, run, nil
}

// greet sends initialize and checks the answer.
func (p *Plugin) greet(ctx context.Context, c plugin.Context, cn *conn, state string) (told InitializeResult, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, StartTime, fmt.Errorf("it did not answer initialize within %v", StartTime))
	defer cancel()
	raw, err := cn.call(ctx, MethodInitialize, InitializeParams{
		ABI: ABI, Kernel: Kernel{Version: p.cfg.Version, Protocol: event.ProtocolVersion}, Settings: p.settings(c), StateDir: state,
	}, nil)
	if err != nil {
		if said := lastWords(cn.p.Stderr()); said != "" && ctx.Err() != nil {
			err = fmt.Errorf("%w; it last said: %s", err, said)
		}
		if _, lost := errors.AsType[*lostError](err); lost {
			err = fmt.Errorf("before it answered initialize, %w", err)
		} else if failed, ok := errors.AsType[*jsonrpc.Error](err); ok {
			err = worded.Error(err, "it answered initialize with an error: %s", oneLine(failed.Error()))
		}
		return told, err
	}
	if err := json.Unmarshal(raw, &told); err != nil {
		return told, fmt.Errorf("its answer to initialize: %w", err)
	}
	return told, CheckGreeting(p.cfg.Description, told)
}

// CheckGreeting returns an error if the answer to initialize is not what the description says.
func CheckGreeting(d Description, told InitializeResult) error {
	switch {
	case told.ABI == 0:
		return fmt.Errorf("its answer to initialize names no version of the plugin protocol: add \"abi\": %d", ABI)
	case told.ABI != ABI:
		return fmt.Errorf("it speaks version %d of the plugin protocol, and this yaya speaks %d", told.ABI, ABI)
	case told.Name != d.Name || told.Version != d.Version || told.Category != d.Category:
		return fmt.Errorf("it says that it is %.80q, version %.40q, category %.40q, and its %s says %q, %q, %q", told.Name, told.Version, told.Category, DescriptionFile, d.Name, d.Version, d.Category)
	case len(told.Tools) > MaxTools:
		return fmt.Errorf("it has %d tools, and a plugin has at most %d", len(told.Tools), MaxTools)
	case len(told.Tools) > 0 && plugin.Category(d.Category) != plugin.Tool:
		return fmt.Errorf("it has tools, and its category is %s", d.Category)
	}
	for _, t := range told.Tools {
		if err := checkTool(t); err != nil {
			return err
		}
	}
	has, may := slices.Sorted(slices.Values(told.Guards)), slices.Sorted(slices.Values(d.Permissions.Guards))
	if !slices.Equal(has, may) {
		return fmt.Errorf("it guards %q, and permissions.guards of its %s says %q", has, DescriptionFile, may)
	}
	return nil
}

// Process is the process of a plugin that nobody speaks with yet.
type Process struct {
	*proc.Process
	StateDir string
}

// Spawn starts the process of a plugin that is not loaded, in its sandbox, with a state folder.
func (p *Plugin) Spawn(state string) (*Process, error) {
	started, _, err := p.launch(state)
	if err != nil {
		return nil, err
	}
	return &Process{started, state}, nil
}

// passed are the variables of yaya's environment that every plugin gets.
var passed = []string{"PATH", "LANG", "LC_ALL", "TZ"}

// environ is the environment of the process. Its home is its state folder.
func (p *Plugin) environ(state string) []string {
	env := []string{"HOME=" + state, "PYTHONDONTWRITEBYTECODE=1"} // the folder is read-only
	for _, name := range slices.Concat(passed, p.cfg.Description.Permissions.Env) {
		if v, ok := p.cfg.Env(name); ok && name != "HOME" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// enter makes the sandbox of a process, with the permissions of the description and no
// others; nil without sandboxes.
func (p *Plugin) enter(state string) (*sandbox.Run, error) {
	boxes := p.cfg.Sandboxes
	if boxes == nil {
		return nil, nil //nolint:nilnil // a test without sandboxes
	}
	policy, err := p.policy(boxes, state)
	if err != nil {
		return nil, err
	}
	run, err := boxes.Enter(policy)
	return run, sandbox.FixedProfile(err)
}

func (p *Plugin) policy(boxes *sandbox.Sandboxes, state string) (sandbox.Policy, error) {
	policy, err := boxes.Policy(Profile, "")
	if err != nil {
		return policy, err
	}
	policy.Require = Needs
	may := &p.cfg.Description.Permissions
	if len(may.Network) > 0 {
		policy.Net.Mode, policy.Net.Allow = sandbox.Hosts, slices.Clone(may.Network)
		policy.Require |= sandbox.NeedHosts
		policy.Net.Denied = func(d sandbox.Denial) { p.refused(fmt.Sprintf("%s:%d (%s)", d.Host, d.Port, d.Why)) }
	}
	policy.Hide = append(policy.Hide, boxes.Cache)
	folder, err := sandbox.OpenExact(p.cfg.Folder)
	if err != nil {
		return policy, err
	}
	own, err := sandbox.OpenExact(state)
	if err != nil {
		return policy, errors.Join(err, sandbox.Close([]sandbox.Path{folder}))
	}
	policy.OwnParts = []string{folder.String(), own.String()}
	policy.Read, policy.Write = []sandbox.Path{folder}, []sandbox.Path{own}
	read, err := sandbox.OpenNamed(boxes.Home, named(boxes.Home, may.Read)...)
	policy.Read = append(policy.Read, read...)
	if err == nil {
		var write []sandbox.Path
		write, err = sandbox.OpenNamed(boxes.Home, named(boxes.Home, may.Write)...)
		policy.Write = append(policy.Write, write...)
	}
	if err == nil {
		policy.Protect, err = sandbox.Protected(policy.Write)
	}
	if err != nil {
		return policy, errors.Join(err, sandbox.Close(policy.Read), sandbox.Close(policy.Write))
	}
	search, _ := p.cfg.Env("PATH")
	for _, name := range sandbox.RuntimesOf(boxes.Home, search) {
		if at, err := sandbox.Open(name); err == nil { // otherwise there is nothing to show
			policy.Runtimes = append(policy.Runtimes, at)
		}
	}
	return policy, nil
}

// named returns paths with the home folder in place of ~.
func named(home string, paths []string) []string {
	out := make([]string, len(paths))
	for i, path := range paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		out[i] = path
	}
	return out
}

// refused notes a connection that the sandbox refused.
func (p *Plugin) refused(what string) {
	p.mu.Lock()
	p.denials++
	p.denied = oneLine(what)
	p.mu.Unlock()
	p.log("warn", "the sandbox refused a connection to "+what)
}
