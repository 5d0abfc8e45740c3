package basket

// Basket holds items.
type Basket struct{ items []string }

// With returns a basket that holds an item more.
func (b Basket) With(item string) Basket {
	return Basket{append(b.items, item)}
}

// Items returns what it holds.
func (b Basket) Items() []string { return b.items }
