package accept_test

import (
	"testing"

	"github.com/yaya-ai/yaya/internal/accept"
)

func TestGzip(t *testing.T) {
	for field, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP ;q=0.5": true, "x-gzip": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=x": false,
		"xgzip": false, "br": false, "*": true, "*;q=0": false, "*, gzip;q=0": false, "identity;q=1, *;q=0": false,
	} {
		if got := accept.Gzip([]string{field}); got != want {
			t.Errorf("Accept-Encoding: %s: %v, want %v", field, got, want)
		}
	}
	if !accept.Gzip([]string{"br", "gzip"}) || accept.Gzip(nil) {
		t.Error("several fields, or none, are read as one")
	}
}
