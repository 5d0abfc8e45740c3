// Command server is an MCP server that leaks the content of its variable
// LEAKY_TOKEN.
package main

import (
	"fmt"
	"os"

	"github.com/yaya-ai/yaya/internal/leaky"
)

func main() {
	if err := (&leaky.Server{Secret: os.Getenv("LEAKY_TOKEN"), Stderr: os.Stderr}).Stdio(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
