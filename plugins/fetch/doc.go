// Package fetch fetches the files of a plugin from where a source names them: a Git repository,
// or the registries of npm, PyPI and Go modules. Each is fetched by its own client, with the
// user's settings of it, and only unpacked: no script, hook, filter or build of the package runs.
//
// A [Client] bounds the bytes, files and time of a fetch. The files lie in a folder of their own,
// which [Fetched.Close] removes. The methods of a client are safe for concurrent use.
package fetch
