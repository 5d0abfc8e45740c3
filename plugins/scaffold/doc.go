// Package scaffold makes the folder of a new plugin: a program in a chosen language, its
// plugin.toml, and the SDK, so that it runs at once and without a network. It writes nothing
// into a folder that exists, and starts no process.
package scaffold
