package kernel

import (
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// planning is the limit of sessions in [session.Plan]: their agents and sub-agents read, and nothing
// else. The kind of yaya's own tool decides; a provided tool calls out, whatever it says of itself.
func (k *Kernel) planning(call tool.Call, def tool.Definition) (why string, err error) {
	if call.Origin != tool.OriginLoop || def.Identity.Provider == "" && (def.Kind == tool.KindRead || def.Delegates) {
		return "", nil
	}
	if strings.HasPrefix(call.SessionID, event.BridgePrefix) { // a plugin's own, which has no mode
		return "", nil
	}
	mode, err := k.Sessions.Mode(call.SessionID)
	if err != nil || mode != session.Plan {
		return "", err
	}
	return "this session plans, and only reads: " + def.Name + " has to wait until its user has approved a plan (propose_plan)", nil
}
