package chat

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/screen"
)

// Limits of completion.
const (
	maxChoices = 200
	maxFiles   = 5000 // that are looked at in a folder
	shown      = 8    // choices on the screen at once
)

// choice is a text that may stand in the place of a word, or of the input.
type choice struct{ text, note string }

// finder finds the choices for a word. It runs in the background.
type finder func() ([]choice, error)

// offered is the message with the choices for the input as it was.
type offered struct {
	input, word string
	choices     []choice
}

// menu is the list of choices that is open.
type menu struct {
	word    string // what a choice replaces
	whole   bool   // a choice replaces all of the input
	choices []choice
	at      int
}

// word returns the text of the input's line up to the cursor, and the word there.
func (m *model) word() (line, word string) {
	lines := strings.Split(m.input.Value(), "\n")
	r := []rune(lines[min(m.input.Line(), len(lines)-1)])
	line = string(r[:min(m.input.Column(), len(r))])
	return line, line[strings.LastIndexAny(line, " \t")+1:]
}

// find returns how to complete the word at the cursor: the name of a command or of a server's prompt,
// its argument, or a file of the workspace or a server's resource behind an @. It returns nil for other
// words.
func (m *model) find() (word string, f finder) {
	line, word := m.word()
	name, arg, inArgument := strings.Cut(line, " ")
	name, isCommand := strings.CutPrefix(name, "/")
	isCommand = isCommand && m.input.Line() == 0
	ctx, api, id := m.ctx, m.api, m.id
	switch {
	case isCommand && !inArgument:
		return word, func() ([]choice, error) { return callable(ctx, api, id, name) }
	case strings.HasPrefix(word, "@"):
		root, prefix := m.workspace, word[1:]
		return word, func() ([]choice, error) { return mentionable(ctx, api, id, root, prefix) }
	case isCommand && strings.Contains(name, ":"):
		server, prompt, _ := strings.Cut(name, ":")
		return word, func() ([]choice, error) { return argumentsOf(ctx, api, id, server, prompt, word) }
	case isCommand:
		i := slices.IndexFunc(commands(), func(c command) bool { return c.name == name })
		if i >= 0 && commands()[i].complete != nil {
			arg = strings.TrimLeft(arg, " ")
			return arg, commands()[i].complete(m, arg)
		}
	}
	return "", nil
}

// beginning returns the commands whose names begin with a prefix.
func beginning(prefix string) (out []choice) {
	for _, c := range commands() {
		if strings.HasPrefix(c.name, prefix) {
			out = append(out, choice{"/" + c.name, c.what})
		}
	}
	return out
}

// files returns the files whose paths begin with a prefix, which is below root. Names that cannot
// be typed, or that contain spaces, are left out, and hidden ones unless the prefix asks for them.
func files(root, prefix string) (out []choice, err error) {
	folder, base := path.Split(prefix)
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }()
	dir, err := top.OpenRoot(path.Join(".", folder)) // a folder: nothing else is opened, no pipe either
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(maxFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || (name[0] == '.' && base == "") || name == ".git" || !typeable(name) || len(out) == maxChoices {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		out = append(out, choice{text: "@" + folder + name})
	}
	return out, nil
}

func typeable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) })
}

// complete looks for choices for the word at the cursor.
func (m *model) complete() tea.Cmd {
	word, f := m.find()
	if f == nil {
		return nil
	}
	input := m.input.Value()
	return m.do(func() error {
		choices, err := f()
		if err == nil {
			m.send(offered{input, word, choices})
		}
		return err
	})
}

// offer shows choices, unless the input has changed meanwhile. If they have a beginning in common
// that is longer than the word, it becomes that.
func (m *model) offer(o offered) {
	if o.input != m.input.Value() {
		return
	}
	switch len(o.choices) {
	case 0:
		m.say1("nothing begins with " + o.word)
	case 1:
		m.replace(menu{word: o.word}, ended(o.choices[0].text))
	default:
		common := o.choices[0].text
		for _, c := range o.choices[1:] {
			n := 0
			for n < min(len(common), len(c.text)) && common[n] == c.text[n] {
				n++
			}
			common = cut.Bytes(common, n)
		}
		if strings.HasPrefix(common, o.word) && common != o.word {
			m.replace(menu{word: o.word}, common)
			o.word = common
		}
		m.menu = &menu{word: o.word, choices: o.choices}
	}
}

// ended adds a space to a completed word, but for a folder, a server and the name of an argument, which
// go on.
func ended(text string) string {
	if strings.HasSuffix(text, "/") || strings.HasSuffix(text, ":") || strings.HasSuffix(text, "=") {
		return text
	}
	return text + " "
}

// replace puts a text in the place of a menu's word.
func (m *model) replace(of menu, text string) {
	if of.whole {
		m.put(text)
		return
	}
	for range []rune(of.word) {
		m.input, _ = m.input.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	m.input.InsertString(text)
}

// keyInMenu handles a key while the menu is open. It reports whether the key was the menu's.
func (m *model) keyInMenu(key string) bool {
	menu := m.menu
	switch key {
	case "tab", "down", "ctrl+n":
		menu.at = (menu.at + 1) % len(menu.choices)
	case "shift+tab", "up", "ctrl+p":
		menu.at = (menu.at + len(menu.choices) - 1) % len(menu.choices)
	case "enter":
		m.menu = nil
		text := menu.choices[menu.at].text
		if !menu.whole {
			text = ended(text)
		}
		m.replace(*menu, text)
	case "esc", "ctrl+g":
		m.menu = nil
	default:
		m.menu = nil
		return false
	}
	return true
}

// viewMenu renders the open menu, or the commands that the input may become.
func (m *model) viewMenu() (out []string) {
	choices, at := []choice(nil), -1
	if m.menu != nil {
		choices, at = m.menu.choices, m.menu.at
	} else if v := m.input.Value(); strings.HasPrefix(v, "/") && !strings.ContainsAny(v, " \n") {
		choices = beginning(v[1:])
	}
	room := min(shown, max(m.height-12, 3))
	if len(choices) > room {
		room-- // for how many more there are
	}
	from := max(0, min(at-room/2, len(choices)-room))
	for i := from; i < min(len(choices), from+room); i++ {
		text := "  " + screen.Clean(choices[i].text, m.width)
		if note := choices[i].note; note != "" {
			text += strings.Repeat(" ", max(1, 16-ansi.StringWidth(text))) + screen.Clean(note, m.width)
		}
		text = ansi.Truncate(text, m.width, "…")
		if i == at {
			out = append(out, screen.Paint(screen.Reverse, text))
		} else {
			out = append(out, screen.Paint(screen.Faint, text))
		}
	}
	if n := len(choices) - room; n > 0 {
		how := "go on typing"
		if m.menu != nil {
			how = "Tab or ↓"
		}
		out = append(out, screen.Paint(screen.Faint, fmt.Sprintf("  … %d more: %s", n, how)))
	}
	return out
}
