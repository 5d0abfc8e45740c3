// Package client speaks the wire protocol to a yaya elsewhere: it enrolls this
// machine as a device ([Enroll]), connects and stays connected ([Client]), puts
// streams together ([Streams]), and attaches a kernel to a gateway ([Uplink]).
//
// A client refuses to answer the challenge of another server than the one that it
// has enrolled with, or of one that was dialled by another name. Its token is
// refreshed before it expires.
//
// Every [Client] and [Uplink] has goroutines of its own, which end with Close.
package client
