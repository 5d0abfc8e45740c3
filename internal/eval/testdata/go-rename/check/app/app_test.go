package app

import (
	"os"
	"strings"
	"testing"

	"example.com/net/client"
)

func TestRenamed(t *testing.T) {
	c := new(client.Client)
	if n := Greet(c, "a", "b"); n != 2 || c.Send("x") != 3 || Do() != "app" {
		t.Errorf("got %d messages, want 2 and then 3", n)
	}
	for _, name := range []string{"app.go", "../client/client.go"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); strings.Contains(text, "Client.Do") || strings.Contains(text, "c.Do(") || strings.Contains(text, "// Do keeps") {
			t.Errorf("%s still has the old name", name)
		}
	}
}
