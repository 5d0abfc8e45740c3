package window

import "testing"

func TestSum(t *testing.T) {
	values := []int{1, 2, 4, 8}
	for _, tc := range [][3]int{{3, 2, 12}, {0, 1, 1}, {0, 9, 1}, {3, 4, 15}, {2, 1, 4}} {
		if got := Sum(values, tc[0], tc[1]); got != tc[2] {
			t.Errorf("Sum(%d, %d) = %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}
