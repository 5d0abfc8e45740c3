package netaddr

import (
	"strings"
	"testing"
)

func TestIsHostName(t *testing.T) {
	for name, want := range map[string]bool{
		"example.com": true, "localhost": true, "1.example": true, "a-b.c": true, strings.Repeat("a", 63) + ".b": true,
		"": false, "Example.com": false, "a..b": false, "a.": false, "-a.b": false, "a-.b": false, "a_b": false, "a b": false, "é.fr": false, "*.a": false,
		strings.Repeat("a", 64): false, strings.Repeat("a.", 127) + "a": false,
	} {
		if got := IsHostName(name); got != want {
			t.Errorf("IsHostName(%q) = %v, want %v", name, got, want)
		}
	}
}
