package main

// Reasons that several have. A life is the context of something that starts goroutines
// after the call that made it, and ends with its Close.
const (
	life     = "its life: goroutines and requests that it starts later end with it"
	callback = "the interface that calls it passes no context"
)

// reasons say why something may be beyond a limit, by figure and name. One for something
// that is within its limit fails.
var reasons = map[string]map[string]string{
	fileLength: {
		"sdk/go/events.go": "it is generated: constants and types for each event of the catalogue",
	},
	lostChains: {
		"mcpbridge/servers.syntaxError": "the text names a package that users have never heard of, and nobody asks for its errors",
	},
	inits: {
		"internal/sandbox/inside.init": "the process that becomes a sandbox must not start anything else of yaya",
	},
	heldContexts: {
		"cmd/yaya/chat.model.ctx":              callback,
		"control/jetstream.Log.ctx":            life,
		"control/tapes.Tapes.ctx":              life,
		"feature.Host.ctx":                     life,
		"feature.supervisor.ctx":               life,
		"gateway/client.Uplink.ctx":            life,
		"gateway/wire.subscription.ctx":        life,
		"internal/callctx.Context.ended":       "it is a context: the standard one in it has the cause, for context.Cause",
		"internal/callctx.Context.parent":      "it is a context: the parent has its values",
		"kernel.Kernel.background":             life,
		"kernel/bus.Bus.life":                  life,
		"kernel/bus.handling.std":              "it is a context: the standard one in it is made when a handler asks for it",
		"kernel/loop.turn.ctx":                 life,
		"mcpbridge/downstream.Server.life":     life,
		"mcpbridge/downstream.exchange.ctx":    "it is the request, which questions of servers end with",
		"mcpbridge/downstream.flight.ctx":      "it outlives the request that began it, and ends with its session",
		"mcpbridge/upstream.Provider.life":     life,
		"mcpbridge/upstream.httpTransport.ctx": life,
		"mcpbridge/upstream.session.life":      life,
		"plugins/llm_echo.stream.ctx":          callback,
		"plugins/remote.conn.life":             life,
		"cmd/yaya/acp.agent.life":              life,
		"cmd/yaya/acp.session.ctx":             life,
		"plugins/tool_shell.reach.ctx":         "it is one command: the proxy of its sandbox asks as long as it runs",
	},
}
