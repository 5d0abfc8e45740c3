// Package daemon is the composition root: the only place that knows every other package.
//
// It puts a yaya together in phases. Each is a type with one function that makes it of the
// phases before it, and a Close that ends what it began; none refers to a later one:
//
//	place         paths, lock, data directory, settings, secrets          place.go
//	entrance      certificate and listeners, bound: addresses are known   entrance.go
//	controlPlane  control log, devices, plane of kernels and agents       control.go
//	stores        folders, permits, trust, record of calls, sandboxes     stores.go
//	core          kernel, gate, those who are asked, agents' plugins      core.go
//	bridge        MCP servers, and the server that offers them            bridge.go
//	front         WebSockets, sessions, admin API, gateway                front.go
//	running       kernel and plugins started, what works beside them      running.go
//
// [Serve] is that list, and waits until its context ends. Where a phase has to tell a later
// one something, the later one registers with it when it is made, before anything is
// started: kernel.Kernel.OnBoundary for instance, or mcpbridge.Bridge.Offer.
//
// Commands ask the running daemon through its socket ([Reach], [Backend]). Where none runs,
// they use as many of the phases in their own process as they need, for their length:
//
//	[WithStore], [WithSettings], [WithSandbox]     the settings alone
//	[WithControl], [WithServers], [WithSecrets]    a locked place and the control plane
//	[WithoutDaemon], [WithBackend], [WithChats]    up to the bridge, with servers
//	[WithAgents], [WithDoctor]                     up to the bridge, with agents
//
// Package main has the flags, prints, and decides exit codes; nothing here writes to a
// terminal.
package daemon
