// Package mail writes mails.
package mail

import "example.com/lib"

// Send sends a mail.
func Send(name string) string { return "mail " + lib.Notify(name) }
