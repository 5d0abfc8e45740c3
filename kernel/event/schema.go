package event

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// enums are the closed string sets among the payload fields.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[LLMErrorKind]():   {LLMConnection, LLMTimeout, LLMStatus, LLMEmpty, LLMOther},
	reflect.TypeFor[ToolErrorKind]():  {ToolValidation, ToolNotFound, ToolRejected},
	reflect.TypeFor[ApprovalAnswer](): {Approve, ApproveForSession, Reject},
	reflect.TypeFor[Next]():           {NextLLM, NextTool, NextMemory, NextDone},
}

// Schema returns the JSON Schema (2020-12) of the kind's payload. Members that
// it does not name are allowed: a payload may grow within a version.
func (k *Kind) Schema() (json.RawMessage, error) {
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}
	for t, values := range enums {
		types[t] = &jsonschema.Schema{Type: "string", Enum: values}
	}
	s, err := jsonschema.ForType(k.payload, &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", k.Name, err)
	}
	open(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = k.Name
	return json.MarshalIndent(s, "", "  ")
}

// open removes "additionalProperties": false from s and all schemas below it.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		open(p)
	}
	open(s.Items)
}
