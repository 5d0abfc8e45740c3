package config

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Get returns a value and the layer that it comes from.
func (s *Store) Get(key string) (v json.RawMessage, from Origin, ok bool) {
	s.cache.RLock()
	defer s.cache.RUnlock()
	return s.get(key)
}

func (s *Store) get(key string) (json.RawMessage, Origin, bool) {
	for _, l := range s.layers() {
		if v, ok := l.values[key]; ok {
			return v, l.origin, true
		}
	}
	if k, ok := lookupKey(key); ok && k.Default != "" {
		return json.RawMessage(k.Default), FromDefault, true
	}
	return nil, "", false
}

type layer struct {
	origin Origin
	values values
}

func (s *Store) layers() [4]layer {
	return [4]layer{{FromFlag, s.flags}, {FromEnv, s.env}, {FromStore, s.live}, {FromFile, s.file}}
}

// Value is one key of [Store.All].
type Value struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
	Origin Origin          `json:"origin"`
}

// keys returns the known keys and those that a layer sets, if they start with prefix, in order; cache
// is held.
func (s *Store) keys(prefix string) (keys []string) {
	for _, k := range Keys {
		if strings.HasPrefix(k.Name, prefix) {
			keys = append(keys, k.Name)
		}
	}
	for _, l := range s.layers() {
		for k := range l.values {
			if strings.HasPrefix(k, prefix) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// All returns the values that are in force and start with prefix, by key.
func (s *Store) All(prefix string) []Value {
	s.cache.RLock()
	defer s.cache.RUnlock()
	var out []Value
	for _, k := range s.keys(prefix) {
		if v, from, ok := s.get(k); ok {
			out = append(out, Value{k, v, from})
		}
	}
	return out
}

// Text returns a string, "" when the key has none.
func (s *Store) Text(key string) string {
	v, _, _ := s.Get(key)
	return TextOf(v)
}

// TextOf returns a JSON string's text, "" for any other value. It is for every setting that a turn
// reads: a string without escapes is not parsed.
func TextOf(v json.RawMessage) string {
	if n := len(v); n >= 2 && v[0] == '"' && v[n-1] == '"' && plain(v[1:n-1]) {
		return string(v[1 : n-1])
	}
	if len(v) == 0 {
		return "" // which would be an error, with an allocation
	}
	var out string
	_ = json.Unmarshal(v, &out)
	return out
}

// plain reports whether the text between the quotes of a JSON string stands for itself.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Texts returns a list of strings, nil when the key has none.
func (s *Store) Texts(key string) []string {
	var out []string
	s.decode(key, &out)
	return out
}

// Int returns a number, 0 when the key has none.
func (s *Store) Int(key string) int {
	var out int
	s.decode(key, &out)
	return out
}

// Bool returns a boolean, false when the key has none.
func (s *Store) Bool(key string) bool {
	var out bool
	s.decode(key, &out)
	return out
}

// Duration returns a duration, 0 when the key has none.
func (s *Store) Duration(key string) time.Duration {
	d, err := time.ParseDuration(s.Text(key))
	if err != nil {
		return 0
	}
	return d
}

// decode leaves out unchanged when the value has another type: kernel keys were
// checked, and a plugin checks its own.
func (s *Store) decode(key string, out any) {
	if v, _, ok := s.Get(key); ok {
		_ = json.Unmarshal(v, out)
	}
}
