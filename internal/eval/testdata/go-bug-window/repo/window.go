package window

// Sum returns the sum of the n values that end at i, or of those that there are.
func Sum(values []int, i, n int) int {
	total := 0
	for at := max(0, i-n+1); at < i; at++ {
		total += values[at]
	}
	return total
}
