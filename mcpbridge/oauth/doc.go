// Package oauth gets authorization for yaya at protected MCP servers.
//
// A [Transport] adds a server's token to its requests and renews it. If a person has to agree,
// [Login] does that, in the process that the person runs. The transport itself obtains grants
// that need no person (client credentials with a secret or a key, workload identity,
// enterprise-managed authorization) when a server asks for them.
//
// The official SDK does the protocol work (protected resource and authorization server
// metadata, PKCE, client registration, iss, scopes). This package adds the parts that it lacks:
// tokens that outlive the process, private_key_jwt and DPoP.
//
// Tokens are sealed in a [Vault], one record per server, together with their issuer; tokens of
// earlier versions of yaya stay in files until they are moved. Nothing obtained from one issuer
// is sent to another. Discovery never reaches into a private network on behalf of a server
// outside it.
//
// The package starts no goroutine.
package oauth
