package config

import (
	"encoding/json"
	"slices"
	"testing"
)

// A key's default has its type, and is one of its choices.
func TestTypesOfKeys(t *testing.T) {
	for _, k := range Keys {
		if k.Default == "" {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(k.Default), &v); err != nil {
			t.Fatalf("the default of %s: %v", k.Name, err)
		}
		ok := false
		switch x := v.(type) {
		case bool:
			ok = k.Type() == "boolean"
		case float64:
			ok = k.Type() == "number"
		case []any:
			ok = k.Type() == "list"
		case string:
			ok = (k.Type() == "text" || k.Type() == "duration") && (k.Choices() == nil || slices.Contains(k.Choices(), x))
		}
		if !ok {
			t.Errorf("%s is a %s of %v, and its default is %s", k.Name, k.Type(), k.Choices(), k.Default)
		}
	}
	for name := range choices {
		if _, ok := lookupKey(name); !ok {
			t.Errorf("there are choices of %s, and no such key", name)
		}
	}
}
