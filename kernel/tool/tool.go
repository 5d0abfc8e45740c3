package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Kind classifies what a tool can do. Anything unknown counts as exec.
type Kind string

// The closed set of Kind.
const (
	KindRead    Kind = "read"
	KindWrite   Kind = "write"
	KindExec    Kind = "exec"
	KindNetwork Kind = "network"
)

// NamePattern matches the name of a registered tool; it is the intersection of the
// names that model providers and MCP clients accept.
var NamePattern = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// DefaultTimeout bounds one run of a tool that names no timeout of its own.
const DefaultTimeout = 120 * time.Second

// OwnTimeout is the timeout of a tool that bounds its runs itself.
const OwnTimeout = time.Duration(-1)

// Identity identifies a tool independently of its name. Provider is "" for built-in
// tools.
type Identity struct {
	Provider string
	Tool     string
}

func (id Identity) String() string {
	if id.Provider == "" {
		return id.Tool
	}
	return id.Provider + "/" + id.Tool
}

// Definition describes a tool. Text and schemas of provided tools are
// untrusted: they describe, and never decide.
type Definition struct {
	Name             string
	Identity         Identity // filled from Name for built-in tools
	Title            string
	Description      string
	InputSchema      json.RawMessage // JSON Schema 2020-12, an object schema
	OutputSchema     json.RawMessage // optional
	Kind             Kind
	RequiresApproval bool
	// Timeout bounds one run; 0 means DefaultTimeout. An [Obedient] tool with
	// OwnTimeout bounds its runs itself.
	Timeout     time.Duration
	Annotations json.RawMessage
	// ForAgents reserves the tool for turns of yaya's own agents: it makes no sense
	// without a conversation. Other callers do not see it.
	ForAgents bool
	// InFolder marks a tool that runs or changes something in the folder that the
	// session works in: a [Gate] admits its calls first.
	InFolder bool
	// Delegates marks a tool that acts through calls of its own alone, about each of which is
	// decided.
	Delegates bool
	// Agreed is set for the policy when the user has approved the call in advance (see
	// [PreApproved]): rules about its kind and about reading hold, and without one it counts as
	// reading.
	Agreed bool
	// Validate makes the dispatcher validate the arguments of native calls too, which
	// otherwise only the provider checks.
	Validate bool
	// Native is the definition as its provider wrote it, for callers that speak
	// the provider's protocol.
	Native json.RawMessage
}

// Origin is the surface through which a call arrived. Rules match on it.
type Origin string

// The surfaces.
const (
	OriginLoop Origin = "loop" // the agent loop
	OriginMCP  Origin = "mcp"  // a downstream MCP client
	OriginCLI  Origin = "cli"  // the command line of the local owner
	OriginWire Origin = "wire" // another kernel or a device, as a skill
	OriginNode Origin = "node" // another node of the cluster, which has the policy of its own say first
	OriginAPI  Origin = "api"  // somebody who may answer asks, through the admin API
)

// Call is one request to run a tool.
type Call struct {
	ID        string
	Name      string
	Args      json.RawMessage // a JSON object
	SessionID string
	Turn      string // of the session's agent; "" for other callers
	Origin    Origin
	Caller    Caller
	// Native is set by callers that speak the provider's protocol. Its Params hold the
	// caller's own bytes of the call, including Args.
	Native *NativeCall
	// Prepared is set by the dispatcher for a [Preparer].
	Prepared *Prepared
	// Why is set by the dispatcher for the [Approver]: the reason that a rule or a hook
	// gives for asking, "" if the default policy asks.
	Why string
	// Progress, when set, receives progress while the tool runs, on the tool's
	// goroutine and never after Invoke has returned. It must not block.
	Progress func(Progress)
}

// NativeCall carries a call in its caller's own bytes.
type NativeCall struct {
	Protocol string         // "mcp"
	Params   jsonrpc.Object // the whole params object, opened
	// Peer is the protocol's own handle of the caller, for providers that speak it and
	// may have to ask the caller something. This package does not look at it.
	Peer any
}

// Progress is one step of a running call. Native, when set, is the provider's
// own notification params.
type Progress struct {
	Progress float64
	Total    *float64
	Message  string
	Native   json.RawMessage
}

// Tool is a callable tool. Invoke obeys ctx; an error that it returns is internal,
// an expected failure is a Result that is not OK.
type Tool interface {
	Definition() Definition
	Invoke(ctx context.Context, call Call) (Result, error)
}

// Obedient tools promise that Invoke returns soon after its context ends. They
// run on the caller's goroutine.
type Obedient interface{ ObeysContext() }

// PreApproved lets a built-in tool report that its user has approved exactly this call
// in advance: it then counts as reading. Rules that name the tool or its kind, and hooks,
// still decide.
type PreApproved interface{ PreApproved(call Call) bool }

// Checker is a tool that knows when a call cannot succeed, so that no person is asked about it. It changes
// nothing. The call may fail later all the same: the check holds for its moment.
type Checker interface {
	// Check reports true, or why the call fails.
	Check(ctx context.Context, call Call) (Result, bool)
}

// ApprovalBriefer lets a tool word its own approval prompt.
type ApprovalBriefer interface{ ApprovalBrief(call Call) string }

// TrustQuestion is the tool name of the question whether to trust a folder. No tool has
// it: yaya itself asks under that name.
const TrustQuestion = "folder_trust"

// RunTool is the name of the tool by which MCP clients give tasks to agents. It is in no
// registry: agents and other surfaces do not see it.
const RunTool = "yaya_run"

// HostQuestion is the tool name of the question whether a command may reach a host. No
// tool has it, either.
const HostQuestion = "sandbox_host"

// IsQuestion reports whether a definition is that of a question of yaya's own, which is not about
// a tool: nobody else's has its name without a provider.
func (d Definition) IsQuestion() bool {
	return d.Identity == Identity{Tool: d.Name} && reserved(d.Name)
}

// reserved reports whether yaya itself asks under a name.
func reserved(name string) bool { return name == TrustQuestion || name == HostQuestion }

// CheckDefinition returns an error if a definition cannot be registered.
func CheckDefinition(d Definition) error {
	switch {
	case d.Name == TrustQuestion:
		return fmt.Errorf("tool name %q is reserved: it is how the question about a folder is put", d.Name)
	case d.Name == HostQuestion:
		return fmt.Errorf("tool name %q is reserved: it is how the question about a host is put", d.Name)
	case d.Name == RunTool:
		return fmt.Errorf("tool name %q is reserved: MCP clients give tasks to yaya's agents by it", d.Name)
	case !NamePattern().MatchString(d.Name):
		return fmt.Errorf("tool name %q does not match %s", d.Name, NamePattern())
	case len(d.InputSchema) == 0:
		return fmt.Errorf("tool %s has no input schema", d.Name)
	}
	if err := CheckSchema(d.InputSchema); err != nil {
		return fmt.Errorf("tool %s: input schema: %w", d.Name, err)
	}
	if len(d.OutputSchema) > 0 {
		if err := CheckSchema(d.OutputSchema); err != nil {
			return fmt.Errorf("tool %s: output schema: %w", d.Name, err)
		}
	}
	return nil
}
