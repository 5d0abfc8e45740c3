package client

import "testing"

// A name that begins like a loopback address is not one.
func TestNewWantsHTTPSElsewhere(t *testing.T) {
	for at, want := range map[string]bool{
		"http://127.0.0.1:8787": true, "http://127.1.2.3": true, "http://localhost:1": true, "http://[::1]:1": true, "https://yaya.example": true,
		"http://127.evil.example": false, "http://127.0.0.1.evil.example": false, "http://127.": false, "http://localhost.evil.example": false, "http://192.0.2.1": false,
	} {
		if _, err := New(at, "d", "l"); (err == nil) != want {
			t.Errorf("New(%q): got %v, want it to be allowed: %v", at, err, want)
		}
	}
}
