// Package service makes yaya a service of the system: units of systemd, or a property list of
// launchd. It writes the files, has the service manager start yaya, and removes both again.
//
// A file carries the sum of its content in a comment. A file without that comment, or with
// another content, is somebody else's: it is neither replaced nor removed.
package service
