package control

// Fanout carries events to every node, the sender included. It may lose some: a
// subscriber that must not miss one reads the log.
type Fanout interface {
	// Publish sends an event to the subscribers of every node. It does not wait for
	// them; the caller must not modify the event afterwards.
	Publish(topic, event string, payload any)
	// Subscribe makes the fan-out call f with every later event, in the order in which
	// each publisher sends them. f must not block. cancel ends the subscription; f is
	// not called after it has returned.
	Subscribe(f func(topic, event string, payload any)) (cancel func())
}
