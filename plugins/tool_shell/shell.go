// Package tool_shell provides the tools that run programs in a session's folder: shell, verify
// and diagram.
//
// Every command runs in its own process group, with an environment without yaya's secrets. Its
// whole process tree ends when it ends, times out, is cancelled, or yaya dies. Its output is
// streamed as tool.progress; up to 1 MiB of it is kept, the beginning and the end.
//
// Commands run in a sandbox (see internal/sandbox): shell in the profile "command", which asks
// a person about hosts that are not listed, verify in "check", which has no network. A
// command's result lists its denials. A person can let a command of shell run outside the
// sandbox; no rule can.
//
// Only the shown command runs: before anybody is asked, shell and verify fix the command, its
// folder as an open descriptor, its environment, and the files and programs that it names
// (files by digest, programs by identity). sh starts suspended, is checked, and continues only
// if nothing has changed.
//
// A command can run in the background: it belongs to its session then, and not to the call, and
// ends with the session, or with yaya (see background.go).
//
// verify runs the commands that check the work, from AGENTS.md or the configuration. It needs
// no approval as long as the commands are the trusted ones and a person has approved every
// change in the folder since. Changes without approval are remembered by folder, across
// sessions and restarts.
package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of a command.
const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 30 * time.Minute
	maxOutput      = 1 << 20
	maxCommand     = 64 << 10
	maxReason      = 1 << 10
	progressEvery  = 100 * time.Millisecond
	maxProgress    = 4 << 10
)

// passed are the variables of yaya's own environment that commands get. Many company networks
// need their own certificates.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SHELL", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOTOOLCHAIN", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "XDG_CACHE_HOME", "UV_LINK_MODE",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO", "npm_config_cafile", "NPM_CONFIG_CAFILE"}

// Plugin provides the tools.
type Plugin struct {
	cfg   Config
	marks *marks

	mu sync.Mutex
	c  plugin.Context

	hosts hostAnswers
	seen  seen
	langs langservers
	jobs  jobs

	tmp    *sandbox.Scratch // by session
	sweeps sync.WaitGroup
}

// Config assembles a [Plugin]. All fields but Guard and Trusted are required.
type Config struct {
	// Folder returns the absolute path that a session works in.
	Folder func(session string) (string, error)
	// Trusted reports whether the folder of a session is trusted; nil: it is.
	Trusted func(session string) bool
	// Agreed reports whether a person has approved exactly these checks in that folder.
	Agreed func(session string, checks []string) bool
	// Guard opens the folder; nil protects nothing.
	Guard     *workspace.Guard
	Artifacts *tool.Store
	Procs     *proc.Manager
	// Sandboxes creates the sandboxes of commands.
	Sandboxes *sandbox.Sandboxes
	// Hosts and Write are the hosts and paths that the user allows every command.
	Hosts, Write func() []string
	// OwnParts are folders within yaya's own that commands may read, such as those of packages
	// with skills. Optional.
	OwnParts func() []string
	// Remedy tells how the user sets a setting; nil means by a command.
	Remedy func(key, value string) string
	// Ask asks a person and returns the answer.
	Ask func(ctx context.Context, call tool.Call, def tool.Definition, brief string) (approval.Decision, error)
	// Unasked reports whether nobody can be asked about a session's calls; nil means that
	// somebody always can.
	Unasked func(session string) bool
	// Undo keeps what commands change in files of the workspace. Optional.
	Undo *undo.Store
	// Data is the data directory, which stores the folders with unreviewed changes.
	Data *os.Root
}

// New returns the plugin.
func New(cfg Config) *Plugin {
	if cfg.Trusted == nil {
		cfg.Trusted = func(string) bool { return true }
	}
	return &Plugin{cfg: cfg, marks: &marks{data: cfg.Data}, langs: langservers{all: map[serverKey]*langserver{}}, tmp: sandbox.NewScratch(filepath.Join(cfg.Sandboxes.Cache, "tmp"))}
}

// allowBy tells how the user sets a setting.
func (p *Plugin) allowBy(key, value string) string {
	if p.cfg.Remedy == nil {
		return "yaya config set " + key + " " + value
	}
	return p.cfg.Remedy(key, value)
}

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{
		Name: "tool-shell", Version: "0.1.0", Category: plugin.Tool,
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"verify":{"type":"array","items":{"type":"string"}},"timeout":{"type":"string","default":"2m"},"env":{"type":"array","items":{"type":"string"}},"max_memory":{"type":"integer"}}}`),
	}
}

// OnUnload implements [plugin.Plugin]. Other commands end with their calls.
func (p *Plugin) OnUnload(context.Context, plugin.Context) error {
	p.jobs.close() // first, since a language server may take its time
	p.langs.close()
	p.sweeps.Wait()
	return p.tmp.Close()
}

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	p.mu.Lock()
	p.c = c
	p.mu.Unlock()
	p.jobs.open()
	p.langs.open()
	p.sweeps.Go(func() {
		if err := p.tmp.Sweep(); err != nil {
			c.Log().Warn().Err(err).Msg("cannot remove temporary files of commands that a killed yaya left behind")
		}
	})
	run, err := tool.New(tool.Definition{
		Name: "shell", Title: "Shell", Kind: tool.KindExec, ForAgents: true, InFolder: true, Timeout: tool.OwnTimeout,
		Description: "Runs a command with sh in the workspace and returns its output, standard error included, and its exit code. Nothing can be typed into it. It runs in a sandbox: it writes in the workspace and in $TMPDIR, which the commands of this session share, sees no credentials, and reaches package registries; its user is asked about other hosts. With background it goes on after the call, as servers and watchers should, and the result has its id.",
	}, p.shell)
	if err != nil {
		return err
	}
	ver, err := tool.New(tool.Definition{
		Name: "verify", Title: "Verify", Kind: tool.KindExec, ForAgents: true, InFolder: true, Timeout: tool.OwnTimeout,
		Description: "Runs the commands that check the work (those of AGENTS.md or the configuration, make test by default) and returns how they ended.",
	}, p.verify)
	if err != nil {
		return err
	}
	dia, err := tool.New(tool.Definition{
		Name: "diagram", Title: "Diagram", Kind: tool.KindExec, ForAgents: true, InFolder: true, Timeout: tool.OwnTimeout,
		Description: "Draws a diagram from a Graphviz (dot) source and keeps the picture (SVG) as an artifact. Without Graphviz on this machine the source is kept.",
	}, p.diagram)
	if err != nil {
		return err
	}
	lang, err := tool.New(tool.Definition{
		Name: "diagnostics", Title: "Diagnostics", Kind: tool.KindExec, ForAgents: true, InFolder: true, Timeout: tool.OwnTimeout,
		Description: diagnosticsFor,
	}, p.diagnostics)
	if err != nil {
		return err
	}
	return errors.Join(c.RegisterTool(shellTool{run, p}), c.RegisterTool(verifyTool{ver, p}), c.RegisterTool(obedient{dia}), c.RegisterTool(diagnosticsTool{obedient{lang}}), p.registerJobTools(c))
}

// errNotPrepared is returned for a call that was not prepared: nobody can have seen it.
var errNotPrepared = errors.New("the call was not prepared")

type obedient struct{ tool.Tool }

func (obedient) ObeysContext() {}

// Touches implements [tool.Toucher]: it only draws.
func (obedient) Touches(tool.Call) []string { return nil }

type shellArgs struct {
	Command    string `json:"command" jsonschema:"what sh runs"`
	Dir        string `json:"dir,omitempty" jsonschema:"folder to run it in, relative to the workspace"`
	Timeout    int    `json:"timeout_seconds,omitempty" jsonschema:"120 by default, 1800 at most; in the background none by default, 86400 at most"`
	Background bool   `json:"background,omitempty" jsonschema:"return while it runs; shell_output reads what it writes, shell_stop ends it, and it ends with this session. Its loopback interface is its own: other commands reach a server there by a Unix socket in $TMPDIR"`
	Outside    bool   `json:"outside,omitempty" jsonschema:"run it outside the sandbox, such as git push with the user's keys; a person is always asked"`
	Reason     string `json:"reason,omitempty" jsonschema:"why it has to run outside the sandbox; for the person who is asked"`
}

// command is a prepared call of shell.
type command struct {
	*setting
	text       string
	limit      time.Duration
	facts      []fact
	outside    bool // of the sandbox
	background bool // it outlives its call
}

type shellTool struct {
	tool.Tool
	p *Plugin
}

func (shellTool) ObeysContext() {}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (shellTool) ApprovalBrief(call tool.Call) string {
	var a shellArgs
	if json.Unmarshal(call.Args, &a) != nil {
		return "run a command"
	}
	how := "run"
	if a.Background {
		how += " in the background"
	}
	if a.Outside {
		how += " outside the sandbox"
	}
	return how + ": " + a.Command
}

// Prepare implements [tool.Preparer].
func (t shellTool) Prepare(ctx context.Context, call tool.Call) (*tool.Prepared, error) {
	var a shellArgs
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return nil, &tool.Failure{Kind: tool.ErrValidation, Err: err}
	}
	if strings.TrimSpace(a.Command) == "" || len(a.Command) > maxCommand || strings.ContainsRune(a.Command, 0) {
		return nil, &tool.Failure{Kind: tool.ErrValidation, Err: fmt.Errorf("the command has between 1 and %d bytes and no NUL", maxCommand)}
	}
	u := asCommand
	if a.Outside {
		if a.Reason = strings.TrimSpace(a.Reason); a.Reason == "" || len(a.Reason) > maxReason {
			return nil, &tool.Failure{Kind: tool.ErrValidation, Err: fmt.Errorf("a command that runs outside the sandbox has a reason of up to %d bytes", maxReason)}
		}
		u = outside
	}
	s, err := t.p.settle(call.SessionID, a.Dir, u)
	if err != nil {
		return nil, failure(tool.ErrValidation, err)
	}
	c := &command{setting: s, text: a.Command, limit: t.p.timeout(), outside: a.Outside, background: a.Background}
	most := maxTimeout
	if a.Background {
		c.limit, most = 0, maxBackground
	}
	if a.Timeout > 0 {
		c.limit = time.Duration(min(a.Timeout, int(most/time.Second))) * time.Second
	}
	if c.facts, err = look(ctx, s.at, s.env, []string{c.text}, false, nil); err != nil {
		s.at.close()
		return nil, err
	}
	facts := c.facts
	if c.outside || s.box.none { // an approval for the session is about code that a person has seen
		facts = append(slices.Clone(facts), fact{what: t.p.marks.last(s.at.root)})
	}
	shown := struct {
		shellArgs
		Cwd string `json:"cwd"`
		shownBox
		Files    []shownFile `json:"files,omitempty"`
		More     int         `json:"more_files,omitempty"`
		Programs []string    `json:"programs,omitempty"`
	}{shellArgs: a, Cwd: s.at.cwd, shownBox: s.box.shown}
	shown.Files, shown.More, shown.Programs = show(c.facts)
	return prepared(c, shown, s, facts)
}

// prepared builds a call with all its inputs fixed.
func prepared(run, shown any, s *setting, facts []fact) (*tool.Prepared, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a command is shown as sh takes it
	if err := enc.Encode(shown); err != nil {
		s.at.close()
		return nil, err
	}
	binds := sha256.New()
	fmt.Fprintln(binds, s.binds())
	for _, f := range facts {
		fmt.Fprintf(binds, "%q %q\n", f.path, f.what)
	}
	return &tool.Prepared{Shown: bytes.TrimSpace(b.Bytes()), Binds: binds.Sum(nil), Run: run, Close: s.at.close, Sandbox: s.box.recorded, Weaker: s.box.shown.Weaker}, nil
}

// shell runs a prepared command.
func (p *Plugin) shell(ctx context.Context, call tool.Call, _ shellArgs) (tool.Result, error) {
	c, err := fixed[*command](call)
	if err != nil {
		return tool.Result{}, err
	}
	if c.outside && !call.Prepared.Approved {
		return tool.Fail(tool.ErrRejected, "nobody has approved that the command runs outside the sandbox"), nil
	}
	if c.background {
		return p.goOn(ctx, call, c)
	}
	r, err := p.run(ctx, call, c.setting, c.text, nil, c.limit, c.unchanged)
	r.remedy = ": timeout_seconds gives a command more time, and background lets it go on after the call"
	return ended(r.result, err)
}

// unchanged returns an error if a file that the command names is not the one that was shown.
func (c *command) unchanged(ctx context.Context) error {
	now, err := look(ctx, c.at, c.env, []string{c.text}, false, nil)
	return errors.Join(err, differ(c.facts, now))
}

// failure gives an error a kind, unless it has one.
func failure(kind tool.ErrorKind, err error) error {
	if _, ok := errors.AsType[*tool.Failure](err); ok {
		return err
	}
	return &tool.Failure{Kind: kind, Err: err}
}

// fixed returns the prepared content of a call.
func fixed[T any](call tool.Call) (T, error) {
	if call.Prepared != nil {
		if run, ok := call.Prepared.Run.(T); ok {
			return run, nil
		}
	}
	var none T
	return none, errNotPrepared
}

// ended returns the result of a command that ended or that could not begin.
func ended(result func() tool.Result, err error) (tool.Result, error) {
	if f, ok := errors.AsType[*tool.Failure](err); ok {
		res := tool.Fail(f.Kind, "%v", f)
		res.NotRun = true // a failure with a kind comes before the command begins
		return res, nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return result(), nil
}

func (p *Plugin) timeout() time.Duration {
	var s string
	if raw := p.c.Config("timeout"); raw != nil && json.Unmarshal(raw, &s) == nil {
		if d, err := time.ParseDuration(s); err == nil && d > 0 {
			return min(d, maxTimeout)
		}
	}
	return defaultTimeout
}
