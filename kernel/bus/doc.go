// Package bus carries the kernel's events. It is the only channel between
// plugins, adapters and the kernel.
//
// # Delivery
//
// Publish validates, stamps id, time and source, and returns; it never runs a
// handler on the caller's goroutine and never waits for one. Routing is by exact
// kind. A subscription sees the events of one session in the order in which the
// bus accepted them, across all kinds it has subscribed; different sessions run
// in parallel, and subscriptions do not wait for each other.
//
// A subscription holds a bounded number of undelivered events. When half of the
// places are taken, a lossy event is dropped and counted. When none is left, a
// reliable event ends the subscription with [ErrLagging]: its owner must subscribe
// again and catch up from durable state.
//
// # Goroutines
//
// Goroutines handle what waits, as many as needed for no handler to hold up the
// events of another session or subscription, and end when nothing waits.
// [Bus.Close] waits for all of them.
//
// # Failures
//
// A handler that returns an error, panics or passes its deadline is reported
// through [Config.OnOutcome]; the bus continues. The deadline cancels the handler's
// context and reports the failure at once, whether or not the handler returns. Long
// work does not belong in a handler.
package bus
