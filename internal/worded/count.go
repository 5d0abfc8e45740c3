package worded

import "fmt"

// Count returns a number with its noun: "1 server", "2 servers". many is the plural.
func Count[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}
