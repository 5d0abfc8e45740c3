package wire

// ToMsgpack and FromMsgpack are the codec, for clients in tests.
func ToMsgpack(json []byte) []byte { return appendMsgpack(nil, json) }

// FromMsgpack is the other direction.
func FromMsgpack(data []byte) ([]byte, error) { return fromMsgpack(data) }
