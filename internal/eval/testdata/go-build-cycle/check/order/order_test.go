package order

import (
	"testing"

	"example.com/trade/customer"
)

func TestLabel(t *testing.T) {
	if got := (Order{7, customer.Customer{ID: 12, Word: "ada"}}).Label(); got != "ada/0012 #0007" || Digits(34567) != "4567" {
		t.Errorf("got %s", got)
	}
}
