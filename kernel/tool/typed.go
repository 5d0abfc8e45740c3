package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/yaya-ai/yaya/internal/members"
)

// typed is a tool that wraps a Go function.
type typed[A any] struct {
	def Definition
	run func(ctx context.Context, call Call, args A) (Result, error)
}

// New returns a tool that calls a function with a typed argument struct. The input
// schema is derived from A unless the definition has one; json tags name the
// members, jsonschema tags describe them.
func New[A any](def Definition, run func(ctx context.Context, call Call, args A) (Result, error)) (Tool, error) {
	if def.InputSchema == nil {
		schema, err := schemaFor[A]()
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", def.Name, err)
		}
		def.InputSchema = schema
	}
	if err := CheckDefinition(def); err != nil {
		return nil, err
	}
	return &typed[A]{def, run}, nil
}

func (t *typed[A]) Definition() Definition { return t.def }

func (t *typed[A]) Invoke(ctx context.Context, call Call) (Result, error) {
	var args A
	if err := members.Decode(call.Args, &args); err != nil {
		return Fail(ErrValidation, "invalid arguments for %s: %v", t.def.Name, err), nil
	}
	return t.run(ctx, call, args)
}

func schemaFor[A any]() (json.RawMessage, error) {
	s, err := jsonschema.For[A](nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}
