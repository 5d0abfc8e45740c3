package netaddr

import (
	"net/http"
	"strings"
)

// Forwarded reports whether a proxy says that it has passed on a request for somebody
// else (RFC 7239, RFC 9110 section 7.6.3, and what proxies send besides).
func Forwarded(h http.Header) bool {
	for name := range h {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "X-Original-Host", "X-Envoy-External-Address":
			return true
		}
		if strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Original-Forwarded-") {
			return true
		}
	}
	return false
}
