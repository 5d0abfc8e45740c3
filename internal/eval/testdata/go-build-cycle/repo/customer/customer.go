package customer

import "example.com/trade/order"

// Customer buys.
type Customer struct {
	ID   int
	Word string
}

// Name returns how a customer is called.
func Name(c Customer) string { return c.Word + "/" + order.Digits(c.ID) }
