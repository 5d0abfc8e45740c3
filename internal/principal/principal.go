// Package principal carries who a request is from, from the place that has
// established it to those that keep things apart by it.
package principal

import "context"

// Owner is the user that runs yaya, on this machine.
const Owner = ""

type key struct{}

// With returns a context that says who a request is from.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, key{}, id)
}

// From returns who a request is from; [Owner] unless somebody has said otherwise.
func From(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}
