// Package chat writes messages.
package chat

import "example.com/lib"

// Say says something to all.
func Say(names ...string) (out string) {
	for _, name := range names {
		out += "chat " + lib.Notify(name) + ";"
	}
	return out
}
