// Package codec is how messages of the wire protocol look: MessagePack or JSON, as
// Phoenix's objects or arrays, in WebSocket frames. It turns every incoming message
// into checked JSON, and makes every outgoing one from JSON. Both sides of the
// protocol use it. It keeps no state.
package codec
