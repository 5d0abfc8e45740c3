// Package jsonrpc reads and writes JSON-RPC 2.0 messages without decoding content
// that it only relays.
//
// [Parse] walks a message once. The walk is strict (RFC 8259 syntax, valid
// UTF-8, one value, no member twice, bounded depth and member counts) and finds
// the envelope's fields on the way. Everything it returns aliases the input, so
// numbers, unknown members and member order survive bit for bit.
//
// The package starts no goroutine and keeps no state; all functions are safe
// for concurrent use on different inputs.
package jsonrpc
