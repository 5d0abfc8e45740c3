package yaya

import (
	"encoding/json"
	"reflect"
	"strings"
)

// schemaOf returns the JSON Schema of a struct.
func schemaOf[A any]() json.RawMessage {
	raw, err := json.Marshal(schema(reflect.TypeFor[A]()))
	if err != nil { // maps of strings always marshal
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}

// schema returns the schema of a type, which must not refer to itself.
func schema(t reflect.Type) map[string]any {
	switch t.Kind() { //nolint:exhaustive // others have no schema
	case reflect.Pointer:
		return schema(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t == reflect.TypeFor[[]byte]() { // base64
			return map[string]any{"type": "string"}
		}
		if t == reflect.TypeFor[json.RawMessage]() {
			return map[string]any{}
		}
		return map[string]any{"type": "array", "items": schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schema(t.Elem())}
	case reflect.Struct:
		return object(t)
	default:
		return map[string]any{}
	}
}

func object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s := schema(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		properties[name] = s
		if !strings.Contains(options, "omit") && f.Type.Kind() != reflect.Pointer {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}
