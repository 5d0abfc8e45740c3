package tree

// Tree is a binary search tree. The zero value is empty.
type Tree struct{ root *node }

type node struct {
	value       int
	left, right *node
}

// Add adds a value.
func (t *Tree) Add(v int) {
	at := &t.root
	for *at != nil {
		if v < (*at).value {
			at = &(*at).left
		} else {
			at = &(*at).right
		}
	}
	*at = &node{value: v}
}
