// Package yaya is the SDK for plugins of yaya in Go. It needs the standard library alone.
//
//	package main
//
//	import (
//		"context"
//
//		yaya "github.com/yaya-ai/yaya/sdk/go"
//	)
//
//	type place struct {
//		Place string `json:"place" doc:"name of a town"`
//	}
//
//	func main() {
//		yaya.Main(yaya.Plugin{
//			Name: "weather", Version: "1.0.0", Category: "tool",
//			Tools: []yaya.Tool{
//				yaya.NewTool("forecast", "Forecasts the weather of a place.", func(_ context.Context, _ *yaya.Call, in place) (yaya.Result, error) {
//					return yaya.Text("Rain in " + in.Place), nil
//				}),
//			},
//		})
//	}
//
// [Main] speaks the protocol of docs/PLUGINS.md over standard input and output, and returns
// when yaya ends the plugin. Standard output belongs to the protocol: print to standard error.
//
// Each event and each call runs on a goroutine of its own, under a context that ends when
// nobody waits any longer. Events of one session come one after the other. The methods of
// [Host] are safe for concurrent use.
package yaya
