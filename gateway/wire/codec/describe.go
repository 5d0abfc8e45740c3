package codec

// Description is one message of a topic, for the machine-readable documentation.
type Description struct {
	Topic      string // with {id} for what varies
	Event      string
	FromClient bool
	Summary    string
	Payload    any // a value of the payload's type; nil for {}
	Reply      any // a value of the reply's response, of client messages
}

// FromServer describes a message of the server.
func FromServer(topic, event, summary string, payload any) Description {
	return Description{Topic: topic, Event: event, Summary: summary, Payload: payload}
}

// FromClient describes a message of a client.
func FromClient(topic, event, summary string, payload, reply any) Description {
	return Description{Topic: topic, Event: event, FromClient: true, Summary: summary, Payload: payload, Reply: reply}
}
