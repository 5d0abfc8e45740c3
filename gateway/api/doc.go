// Package api is the harness of the HTTP APIs: /api, /v1, the control plane, and the routes
// of the listener itself.
//
// A [Route] is a pattern, an access policy, a style of errors and a handler. An [API] makes
// its routes of operations: typed functions, whose inputs and outputs make the OpenAPI
// document and a page of it that needs no script ([Handle]), and handlers that read and
// write by themselves ([API.Plain]). The listener puts the routes of all APIs into one
// [Table], which refuses a route without a policy and answers for what is not there.
//
// Bodies of JSON are bounded in size and strict: no member twice or in another case, nothing
// unknown, of type application/json and not encoded ([Read]). Errors have a status and a
// code from one table ([Explain]), and each API words them in its [Style].
//
// All of it is safe for concurrent use once it serves, and starts nothing.
package api
