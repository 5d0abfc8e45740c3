// Package codec is how messages of the wire protocol look: MessagePack or JSON, as
// Phoenix's objects or arrays, in WebSocket frames. Whatever comes in is turned
// into JSON that has been checked; whatever goes out is made from JSON. Both sides
// of the protocol use it. It keeps no state.
package codec
