// Package accept reads what a client accepts.
package accept

import (
	"strconv"
	"strings"
)

// Gzip reports whether the fields Accept-Encoding of a request allow gzip (RFC 9110, section 12.5.3).
func Gzip(values []string) bool {
	others := false
	for _, v := range values {
		for field := range strings.SplitSeq(v, ",") {
			coding, params, _ := strings.Cut(field, ";")
			coding = strings.TrimSpace(coding)
			ok := true
			if q, found := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(params), " ", ""), "q="); found {
				weight, err := strconv.ParseFloat(q, 64)
				ok = err == nil && weight > 0
			}
			switch {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				return ok
			case coding == "*":
				others = ok
			}
		}
	}
	return others
}
