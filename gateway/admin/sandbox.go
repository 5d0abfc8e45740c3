package admin

import (
	"context"
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

type (
	// Sandbox lists the limits that sandboxes enforce on the machine that yaya runs on, with the
	// present settings.
	Sandbox struct {
		Status  plugin.Health `json:"status" enum:"ok,degraded,failed" doc:"degraded if something that a profile wants is not enforced, failed if no program starts in a sandbox"`
		Summary string        `json:"summary"`
		Mode    string        `json:"mode" doc:"the setting sandbox.mode"`
		Setting string        `json:"setting" doc:"the setting sandbox.backend"`
		Backend string        `json:"backend" doc:"what sandboxes are made with; empty if none can be"`
		Why     string        `json:"why,omitempty" doc:"why it is not the best of all"`
		Fix     string        `json:"fix,omitempty" doc:"the one command that changes it"`

		System   string           `json:"system" doc:"and its version"`
		User     string           `json:"user"`
		Landlock int              `json:"landlock" doc:"version of its interface, 0 without it"`
		HostProc string           `json:"host_proc,omitempty" doc:"why a sandbox sees the host's /proc"`
		Backends []SandboxBackend `json:"backends" doc:"the best first"`
		Profiles []SandboxProfile `json:"profiles"`
		// Programs say what runs in which profile.
		Programs []SandboxProgram `json:"programs"`
		Gaps     []SandboxGap     `json:"gaps" doc:"what is not enforced, or in part"`
		Breaks   []SandboxGap     `json:"breaks" doc:"what the profiles allow and does not work here"`
	}
	// SandboxBackend is a way to make sandboxes, and whether it works here.
	SandboxBackend struct {
		Name  string `json:"name"`
		Works bool   `json:"works"`
		Why   string `json:"why,omitempty" doc:"it does not"`
	}
	// SandboxProfile lists the enforced limits of a profile.
	SandboxProfile struct {
		Profile  string   `json:"profile"`
		About    string   `json:"about" doc:"what a program in it has"`
		Backend  string   `json:"backend"`
		Enforced []string `json:"enforced"`
		Lacks    []string `json:"lacks" doc:"what the profile wants and is not enforced at all"`
		Missing  []string `json:"missing" doc:"what is not enforced, or in part, in sentences"`
		Breaks   []string `json:"breaks" doc:"what the profile allows and does not work here, in sentences"`
		Denials  int64    `json:"denials" doc:"connections that were refused since the start"`
	}
	// SandboxProgram is something that yaya starts.
	SandboxProgram struct {
		Kind    string `json:"kind" enum:"server,commands,checks"`
		Name    string `json:"name,omitempty" doc:"of a server"`
		Profile string `json:"profile" doc:"empty if it runs outside the sandbox"`
		Backend string `json:"backend,omitempty" doc:"of a server whose process runs: with what its sandbox was made"`
		Refused string `json:"refused,omitempty" doc:"why it does not start"`
		Note    string `json:"note,omitempty" doc:"how it runs, or why it does not, if that is not what the settings and its profile say"`
	}
	// SandboxGap is something that is not enforced, or in part, or does not work.
	SandboxGap struct {
		What     string   `json:"what"`
		Profiles []string `json:"profiles"`
	}
)

func (a *API) sandboxRoutes() {
	r := routes{a, "sandbox", a.cfg.Sandbox != nil, "sandboxes"}
	handle(r, "GET", "/api/sandbox", "getSandbox", api.For(auth.ConfigRead), "Get what sandboxes enforce here, why not more, and how to change it", http.StatusOK, func(context.Context, *none) (*struct{ Body Sandbox }, error) {
		return &struct{ Body Sandbox }{a.cfg.Sandbox()}, nil
	})
}
