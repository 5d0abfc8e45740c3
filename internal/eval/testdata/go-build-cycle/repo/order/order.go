package order

import "example.com/trade/customer"

// Order belongs to a customer.
type Order struct {
	Number int
	Of     customer.Customer
}

// Label names an order.
func (o Order) Label() string { return customer.Name(o.Of) + " #" + Digits(o.Number) }

// Digits writes a number with four digits.
func Digits(n int) string {
	out := ""
	for range 4 {
		out = string(rune('0'+n%10)) + out
		n /= 10
	}
	return out
}
