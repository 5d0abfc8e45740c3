// Package fetch fetches the files of a plugin from where a source names them: a Git repository,
// or the registries of npm, PyPI and Go modules. Each is fetched by its own client, with the
// user's settings of it, and only unpacked: no script, hook, filter or build of the package runs.
//
// A [Client] bounds the bytes, files and time of a fetch. What it returns lies in a folder of its
// own, which [Fetched.Close] removes. Its methods are safe for concurrent use.
package fetch
