// Package config holds yaya's settings in layers, each overriding the one before:
// defaults, the TOML file, settings changed while yaya runs, the environment,
// flags.
//
// Keys are dotted and values are JSON. The live part is a file that [Store.Set] and
// [Store.Unset] replace atomically before the change counts; every change is
// announced as config.updated, whoever made it: [Store.Refresh] notices changes of
// other processes. Kernel keys have a type and are closed; plugin.<name>.* and
// providers.<id>.* are free-form and belong to plugins.
//
// [Providers] is a read-only view of the configured model providers, and
// [Store.SeedProviders] writes the first ones.
//
// All methods are safe for concurrent use; no goroutine is started.
package config
