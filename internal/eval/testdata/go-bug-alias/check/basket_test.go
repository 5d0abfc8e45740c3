package basket

import (
	"slices"
	"testing"
)

func TestWith(t *testing.T) {
	base := Basket{}.With("a").With("b").With("c")
	left, right := base.With("left"), base.With("right")
	if !slices.Equal(left.Items(), []string{"a", "b", "c", "left"}) || !slices.Equal(right.Items(), []string{"a", "b", "c", "right"}) || len(base.Items()) != 3 {
		t.Errorf("got %q, %q and %q", left.Items(), right.Items(), base.Items())
	}
}
