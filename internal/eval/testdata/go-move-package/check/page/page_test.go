package page

import (
	"os"
	"strings"
	"testing"

	"example.com/site/slug"
)

func TestMoved(t *testing.T) {
	if got := (Page{"Hello, World 2!"}).Address(); got != "/hello-world-2/" || slug.Of("A b") != "a-b" {
		t.Errorf("got %s", got)
	}
	raw, err := os.ReadFile("page.go")
	if err != nil || strings.Contains(string(raw), "func Slug") {
		t.Errorf("page.go still has Slug, %v", err)
	}
}
