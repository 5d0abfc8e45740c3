// Package lib notifies people.
package lib

// Notify returns what it says to somebody.
func Notify(name string) string { return "to " + name }
