// Package config is what yaya is told to do: defaults, below the TOML file, below
// what was set while it ran, below the environment, below flags.
//
// Keys are dotted and values are JSON. The live part is a file that [Store.Set]
// and [Store.Unset] replace atomically before the change counts; every change is
// announced as config.updated (Y-73), whoever made it: [Store.Refresh] notices
// what another process has written. Kernel keys have a type and are closed;
// plugin.<name>.* and providers.<id>.* are free-form and belong to plugins.
//
// [Providers] is a read-only view of the configured model providers (Y-77), and
// [Store.SeedProviders] writes the first ones (Y-79).
//
// All methods are safe for concurrent use; no goroutine is started.
package config
