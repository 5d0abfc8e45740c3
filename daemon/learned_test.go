package daemon

import (
	"fmt"
	"testing"
)

// Learning all secrets takes as long as there are secrets, not as long as their square.
func TestLearningIsLinear(t *testing.T) {
	cost := func(n int) float64 {
		values := map[string]string{}
		for i := range n {
			values[fmt.Sprintf("secret-%d", i)] = fmt.Sprintf("%08x-the-value-%d", i*2654435761, i)
		}
		return testing.AllocsPerRun(1, func() { new(Flags).learnSecrets(values) })
	}
	few, many := cost(64), cost(512)
	if many > 16*few {
		t.Errorf("learning 512 secrets takes %.0f allocations, and 64 %.0f: want about 8 times as many", many, few)
	}
}
