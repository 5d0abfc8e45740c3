package shop

import "testing"

func TestShop(t *testing.T) {
	if got := Total(250, 3); got != Cents(750) {
		t.Errorf("Total = %d, want 750", got)
	}
	if got := (Cart{"a": 2, "b": 3}).Count(); got != 5 {
		t.Errorf("Count = %d, want 5", got)
	}
}
