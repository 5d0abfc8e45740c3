// Package mcpbridge joins MCP servers to the kernel: configured servers become
// feature providers, and their life is told on the bus.
//
// A [Bridge] is the one place that knows configuration, processes and providers
// together. It takes the decisions that belong to the MCP layer, which server
// runs with which environment, and none about who may call what (F-4).
package mcpbridge
