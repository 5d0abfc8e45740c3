// Package recall tells strategies how to use the memory: the modes of their setting "memory", and the text that an
// exchange is kept as.
package recall

import (
	"fmt"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Mode is the setting of a strategy.
type Mode string

// The modes.
const (
	Off    Mode = "off"    // the default
	Recall Mode = "recall" // the memory is searched before a turn's first model call
	Full   Mode = "full"   // and has what was said afterwards
)

// Schema is the JSON schema of the setting.
const Schema = `{"enum":["off","recall","full"],"default":"off"}`

// Hits bounds the memories that a turn starts with.
const Hits = 5

// maxText is how many characters of a question, and of an answer, a memory has.
const maxText = 500

// Reads reports whether the memory is searched.
func (m Mode) Reads() bool { return m == Recall || m == Full }

// Writes reports whether it keeps what was said.
func (m Mode) Writes() bool { return m == Full }

// Exchange returns the memory of a question and its answer.
func Exchange(asked, answer string) string {
	return fmt.Sprintf("The user said: %s\nThe answer was: %s", cut.Line(asked, maxText), cut.Line(answer, maxText))
}
