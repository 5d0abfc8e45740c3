package nodes_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/yaya-ai/yaya/control/nodes"
)

func TestFile(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if n, err := nodes.Read(root); n != nil || err != nil {
		t.Errorf("without the file: %v, %v, want that it is alone", n, err)
	}
	want := nodes.Node{Name: "north", Servers: nodes.Servers{URL: "nats://nats.example", Credentials: "c", CA: "a"}}
	if err := want.Write(root); err != nil {
		t.Fatal(err)
	}
	if n, err := nodes.Read(root); err != nil || n == nil || !reflect.DeepEqual(*n, want) {
		t.Errorf("got %v, %v, want %v", n, err, want)
	}
	own := nodes.Node{Name: "south", Route: "10.0.0.2:6222", Incarnation: "ABC", Routes: []string{"10.0.0.1:6222"}}
	if err := own.Write(root); err != nil {
		t.Fatal(err)
	}
	if n, err := nodes.Read(root); err != nil || n == nil || !reflect.DeepEqual(*n, own) {
		t.Errorf("got %v, %v, want %v", n, err, own)
	}
	for _, text := range []string{"", "{}", `{"name":"north"}`, `{"name":"No","nats":{"url":"nats://x"}}`, `{"name":"north","route":"x"}`, `{"name":"north","route":"10.0.0.1:1","routes":["x"]}`, `{"name":"north","route":"10.0.0.1:1","nats":{"url":"nats://x"}}`} {
		if err := root.WriteFile(nodes.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := nodes.Read(root); err == nil {
			t.Errorf("%q: got %v, want an error", text, n)
		}
	}
	if err := want.Write(root); err != nil {
		t.Fatal(err)
	}
	if err := root.Chmod(nodes.File, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Read(root); err == nil {
		t.Error("a file that others can read was read, want an error")
	}
}
