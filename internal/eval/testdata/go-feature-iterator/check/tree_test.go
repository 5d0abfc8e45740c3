package tree

import (
	"slices"
	"testing"
)

func TestAll(t *testing.T) {
	var tree Tree
	for _, v := range []int{5, 2, 8, 1, 9, 3} {
		tree.Add(v)
	}
	if got := slices.Collect(tree.All()); !slices.Equal(got, []int{1, 2, 3, 5, 8, 9}) {
		t.Errorf("got %v", got)
	}
	var got []int
	for v := range tree.All() {
		if got = append(got, v); v == 2 {
			break
		}
	}
	if !slices.Equal(got, []int{1, 2}) || slices.Collect(new(Tree).All()) != nil {
		t.Errorf("got %v", got)
	}
}
