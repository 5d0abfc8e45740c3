package auth

import "testing"

// A name that begins like a loopback address is not one.
func TestIssuerOverHTTPIsOnThisMachine(t *testing.T) {
	for issuer, want := range map[string]bool{
		"http://127.0.0.1:1": true, "http://localhost": true, "http://[::1]:1": true, "https://issuer.example": true,
		"http://127.evil.example": false, "http://127.0.0.1.evil.example": false, "http://localhost.evil.example": false,
	} {
		if _, err := NewVerifier(Config{Issuer: issuer, Audience: "https://yaya.example/mcp"}); (err == nil) != want {
			t.Errorf("NewVerifier(issuer %q): got %v, want it to be allowed: %v", issuer, err, want)
		}
	}
}
