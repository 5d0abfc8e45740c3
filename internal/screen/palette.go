package screen

// The attributes. They are not colours, so NO_COLOR leaves them.
const (
	Bold      = "\x1b[1m"
	Faint     = "\x1b[2m"
	Italic    = "\x1b[3m"
	Underline = "\x1b[4m"
	Reverse   = "\x1b[7m"
	Strike    = "\x1b[9m"
	Reset     = "\x1b[0m"
)

// Palette is a set of colours, as control sequences; the zero value has none.
type Palette struct {
	Accent  string // of headings, code in a sentence, and what needs attention
	Good    string // of success, and added lines
	Bad     string // of failure, and removed lines
	Keyword string // of code
	Literal string // of strings and numbers in code
}

// Colours has only base colours, which people set to their liking, and of these only the ones that
// can be read on black and on white: no terminal has to be asked for its background.
var Colours = Palette{Accent: magenta, Good: green, Bad: red, Keyword: magenta, Literal: green}

const (
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	magenta = "\x1b[35m"
)

// Paint returns a text in a style, and the text alone without one.
func Paint(style, text string) string {
	if style == "" || text == "" {
		return text
	}
	return style + text + Reset
}
