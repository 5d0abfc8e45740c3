// Package plugin is the ABI by which everything but the kernel is part of yaya:
// surfaces, tools, model providers, strategies, memories and skills.
//
// # ABI
//
// A [Plugin] says what it is, which kinds it subscribes to, and handles events
// one by one. What it may do, it does through its [Context]. Nothing in either
// needs the same process: values are JSON, and calls are requests.
//
// # Registry
//
// The [Registry] loads plugins in the order given, but each after what it
// requires. It has one path for all of them: bundled decides nothing but the
// order and whether a plugin can be removed (Y-3). Events reach a plugin by its
// category's routing rule; a category may emit only what is its own to say
// (Y-8…Y-13), under a source that it cannot choose.
//
// A plugin that fails N times in a row is unloaded (Y-165). A failure is told to
// whoever waits for the plugin's answer, is announced as plugin.error, and harms
// no other plugin (Y-170). The registry's own goroutines are those that unload;
// [Registry.Stop] waits for them.
package plugin
