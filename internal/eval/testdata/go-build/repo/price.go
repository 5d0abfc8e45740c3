package shop

// Cents is an amount of money.
type Cents int64

// Total returns the price of n pieces.
func Total(one Cents, n int) Cents { return one * n }
