// Package catalog finds MCP servers in registries that speak the API of the official MCP
// registry, and in a list that comes with yaya, and makes an entry of yaya's configuration from
// what is found.
//
// # What an entry may do
//
// Entries are hostile: anybody can publish one. An entry is decoded once, into the types here;
// what they do not have is dropped, and what they refuse is left out. [Make] takes programs from a
// fixed list of runners, never from the entry, pins the version, and refuses texts that would
// change what is shown or what yaya would insert: control characters, characters that change
// the direction of text, and references such as ${secret:NAME}, which yaya would expand. Flags of a
// runner are taken from a list of harmless ones.
//
// Nothing here starts a program or writes the configuration: [Plan] is a proposal.
//
// # Bounds
//
// An answer of a registry has at most 8 MiB and 100 entries, an entry 64 KiB. A [Catalog] keeps at
// most 2,000 entries of a registry, in memory and in the file of its cache. One request at a time
// goes to a registry; it ends after 20 seconds. Methods of a Catalog are safe for concurrent use.
package catalog
