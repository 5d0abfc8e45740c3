// Package mcpbridge connects MCP servers to the kernel: configured servers become feature
// providers, and their lifecycle is published on the bus.
//
// A [Bridge] is the only place that knows configuration, processes and providers together. It
// decides which server runs with which environment; it does not decide who may call which tool.
package mcpbridge
