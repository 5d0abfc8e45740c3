// Package oauth authorises yaya at protected MCP servers.
//
// A [Transport] adds a server's token to its requests and renews it; what a
// person has to agree to is done by [Login], in the process that the person
// runs. Grants without a person (client credentials with a secret or a key,
// workload identity, enterprise-managed authorization) are obtained by the
// transport itself when a server asks for them.
//
// The protocol work (protected resource and authorization server metadata, PKCE,
// client registration, iss, scopes) is the official SDK's; what it lacks, tokens
// that outlive the process, private_key_jwt and DPoP, is here.
//
// Tokens lie sealed in a [Vault], one record per server, with the issuer that they
// are of; those of an earlier yaya lie in files until they are moved. Nothing is sent to an issuer that was obtained from another.
// Discovery never reaches into a private network on behalf of a server that is
// not in one (R21).
//
// The package starts no goroutine.
package oauth
