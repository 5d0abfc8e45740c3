// Package app greets.
package app

import "example.com/net/client"

// Greet has Client.Do send a greeting to each name.
func Greet(c *client.Client, names ...string) (n int) {
	for _, name := range names {
		n = c.Do("hello, " + name)
	}
	return n
}

// Do is another function.
func Do() string { return "app" }
