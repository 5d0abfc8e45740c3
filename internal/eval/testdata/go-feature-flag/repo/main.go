// Command head prints the first lines of its input.
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for n := 0; n < 10 && lines.Scan(); n++ {
		fmt.Println(lines.Text())
	}
}
