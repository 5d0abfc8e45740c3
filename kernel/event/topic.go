package event

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
)

// Class is the delivery class: the effect of a slow subscriber.
type Class int

const (
	// Reliable events are never dropped silently: the bus ends a subscription that
	// cannot keep up with an error.
	Reliable Class = iota
	// Lossy events are dropped for a subscriber whose queue is full, and
	// counted.
	Lossy
)

// Emitter says who may emit a kind.
type Emitter int

const (
	// Anyone may emit the kind, plugins included.
	Anyone Emitter = iota
	// KernelOnly kinds state facts that only the kernel knows; a plugin that
	// emits one is refused.
	KernelOnly
)

// Kind describes one entry of the catalogue.
type Kind struct {
	Name    string
	Class   Class
	Emitter Emitter
	// OnKernel kinds travel on KernelSession only, whichever session they concern
	// (Y-37).
	OnKernel bool
	// InConversation kinds travel neither on KernelSession nor on a plugin's
	// private session.
	InConversation bool
	// Flow is the direction in the contract's words, for the documentation.
	Flow string

	payload reflect.Type
	decode  func(json.RawMessage) (any, error)
}

// Payload returns the payload type.
func (k *Kind) Payload() reflect.Type { return k.payload }

// Topic is a kind with its payload type P. Two topics are never equal by accident:
// only Define creates them.
type Topic[P any] struct{ kind *Kind }

// Kind returns the catalogue entry of the topic.
func (t Topic[P]) Kind() *Kind { return t.kind }

// Name returns the dotted identifier.
func (t Topic[P]) Name() string { return t.kind.Name }

// Responder is implemented by payloads that answer a request; the value is the
// id of the request's event.
type Responder interface{ RequestRef() string }

var (
	catalogue  = map[string]*Kind{}
	extensions = map[string]*Kind{}
)

type option func(*Kind)

func kernelOnly(k *Kind)     { k.Emitter = KernelOnly }
func onKernel(k *Kind)       { k.OnKernel = true }
func inConversation(k *Kind) { k.InConversation = true }

// define declares a public kind. It is called at package initialisation only,
// so a mistake stops the program before it does anything.
func define[P any](name string, class Class, flow string, opts ...option) Topic[P] {
	if !kindPattern().MatchString(name) || catalogue[name] != nil {
		panic("event: bad or repeated kind " + name)
	}
	k := newKind[P](name, class)
	k.Flow = flow
	for _, o := range opts {
		o(k)
	}
	catalogue[name] = k
	return Topic[P]{k}
}

// DefineExtension declares a private kind x.<plugin>.<kind> with a payload
// type. Call it from a package-level variable of the plugin that owns the kind;
// it panics on a name outside the namespace and on a second declaration.
func DefineExtension[P any](name string, class Class) Topic[P] {
	if !IsExtension(name) || extensions[name] != nil {
		panic("event: bad or repeated extension kind " + name)
	}
	k := newKind[P](name, class)
	extensions[name] = k
	return Topic[P]{k}
}

func newKind[P any](name string, class Class) *Kind {
	return &Kind{
		Name: name, Class: class, payload: reflect.TypeFor[P](),
		decode: func(raw json.RawMessage) (any, error) {
			var p P
			if err := json.Unmarshal(raw, &p); err != nil {
				return nil, fmt.Errorf("payload of %s: %w", name, err)
			}
			return p, nil
		},
	}
}

// Lookup returns the catalogue entry of a kind: a public one, or a declared
// extension. An undeclared extension kind gets an entry with a raw payload.
// Anything else is unknown.
func Lookup(kind string) (*Kind, bool) {
	if k, ok := catalogue[kind]; ok {
		return k, true
	}
	if k, ok := extensions[kind]; ok {
		return k, true
	}
	if IsExtension(kind) {
		return newKind[json.RawMessage](kind, Reliable), true
	}
	return nil, false
}

// Public yields the closed catalogue in alphabetical order.
func Public() iter.Seq[*Kind] {
	return func(yield func(*Kind) bool) {
		for _, name := range slices.Sorted(maps.Keys(catalogue)) {
			if !yield(catalogue[name]) {
				return
			}
		}
	}
}

// DecodePayload decodes a raw payload into the type of its kind.
func DecodePayload(kind string, raw json.RawMessage) (any, error) {
	k, ok := Lookup(kind)
	if !ok {
		return nil, fmt.Errorf("unknown event kind %q: public kinds are a closed list, private ones start with x.<plugin>", kind)
	}
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	return k.decode(raw)
}
