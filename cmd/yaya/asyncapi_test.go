package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

const asyncAPI = "../../docs/asyncapi.json"

// docs/asyncapi.json is what the Go types say, and every message of docs/WIRE.md's
// topics is in it.
func TestAsyncAPI(t *testing.T) {
	all := slices.Concat(wire.Describe(), plane.Describe(), admin.Describe())
	doc, err := json.MarshalIndent(document(t, all), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	doc = append(doc, '\n')
	if *updateDocs {
		if err := os.WriteFile(asyncAPI, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(asyncAPI)
	if err != nil || !bytes.Equal(got, doc) {
		t.Errorf("docs/asyncapi.json is stale: go test ./cmd/yaya -run TestAsyncAPI -update-docs, and review the change (%v)", err)
	}
	text, err := os.ReadFile("../../docs/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		for _, name := range []string{d.Topic, d.Event} {
			if name != "" && !strings.HasPrefix(name, "<") && !bytes.Contains(text, []byte("`"+name)) && !bytes.Contains(text, []byte(`"`+name)) {
				t.Errorf("docs/WIRE.md does not name %s", name)
			}
		}
	}
}

func document(t *testing.T, all []codec.Description) map[string]any {
	t.Helper()
	channels, operations, schemas := map[string]any{}, map[string]any{}, map[string]any{}
	schema := func(v any) any {
		if v == nil {
			return map[string]any{"type": "object"}
		}
		s, err := jsonschema.ForType(reflect.TypeOf(v), &jsonschema.ForOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, d := range all {
		channel := key(d.Topic)
		if channel == "" {
			channel = "handshake"
		}
		c, ok := channels[channel].(map[string]any)
		if !ok {
			c = map[string]any{"address": d.Topic, "messages": map[string]any{}}
			if d.Topic == "" {
				c["address"] = nil
			}
			if strings.Contains(d.Topic, "{id}") {
				c["parameters"] = map[string]any{"id": map[string]any{}}
			}
			channels[channel] = c
		}
		who, action := "server", "receive" // what a client does
		if d.FromClient {
			who, action = "client", "send"
		}
		name := who + "." + key(d.Event)
		m := map[string]any{"name": d.Event, "summary": d.Summary, "payload": map[string]any{"$ref": "#/components/schemas/" + channel + "." + name}}
		schemas[channel+"."+name] = schema(d.Payload)
		c["messages"].(map[string]any)[name] = m
		ref := map[string]any{"$ref": "#/channels/" + channel + "/messages/" + name}
		op := map[string]any{"action": action, "channel": map[string]any{"$ref": "#/channels/" + channel}, "messages": []any{ref}}
		if d.FromClient && d.Reply != nil {
			reply := name + ".reply"
			schemas[channel+"."+reply] = schema(d.Reply)
			c["messages"].(map[string]any)[reply] = map[string]any{"name": "phx_reply", "summary": "response of the reply to " + d.Event, "payload": map[string]any{"$ref": "#/components/schemas/" + channel + "." + reply}}
			op["reply"] = map[string]any{"channel": op["channel"], "messages": []any{map[string]any{"$ref": "#/channels/" + channel + "/messages/" + reply}}}
		}
		operations[channel+"."+name] = op
	}
	return map[string]any{
		"asyncapi": "3.0.0",
		"info":     map[string]any{"title": "yaya wire protocol", "version": "1", "description": "Framing, handshake and limits are described in WIRE.md."},
		"servers":  map[string]any{"yaya": map[string]any{"host": "127.0.0.1:8787", "pathname": "/ws", "protocol": "wss"}},
		"channels": channels, "operations": operations, "components": map[string]any{"schemas": schemas},
	}
}

// key turns a name into a key of AsyncAPI.
func key(s string) string {
	return strings.NewReplacer(":", "-", "{", "", "}", "", "<", "", ">", "").Replace(s)
}
