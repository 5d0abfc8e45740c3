// Package plugin defines the ABI for every part of yaya outside the kernel:
// surfaces, tools, model providers, strategies, memories and skills.
//
// # ABI
//
// A [Plugin] describes itself in a manifest, names the kinds that it subscribes to,
// and handles events one by one. It acts through its [Context]. Neither depends on
// sharing a process: values are JSON, and calls are requests.
//
// # Registry
//
// The [Registry] loads plugins in the order given, but each after what it requires.
// All plugins take the same path: bundled determines only the order and whether a
// plugin can be removed. Events reach a plugin by its category's routing rule; a
// category may emit only its own kinds, under a source that it cannot choose.
//
// A plugin that fails N times in a row is unloaded. A failure is reported to
// everybody who waits for the plugin's answer, is announced as plugin.error, and
// harms no other plugin. The registry's own goroutines are those that unload;
// [Registry.Stop] waits for them.
package plugin
