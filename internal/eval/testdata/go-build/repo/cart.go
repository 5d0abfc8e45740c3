package shop

// Cart holds pieces by name.
type Cart map[string]int

// Count returns how many pieces there are.
func (c Cart) Count() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return total
}
