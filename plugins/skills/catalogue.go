package skills

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/invisible"
)

// bytesPerToken is fewer than models need on average, so that the catalogue stays within its
// share of the window in other languages, too.
const bytesPerToken = 3

// lengths are those to which descriptions are cut, in characters, until all fit.
var lengths = []int{agentskill.MaxDescription, 400, 200, 100, 60}

const (
	intro = "# Skills\nInstructions for certain tasks. When a task matches a description, call the tool " + ToolName + " with the name before you begin, and follow what it returns.\n"
	more  = "… %d more skills are not listed: " + ToolName + " finds them by words (find).\n"
)

// Catalogue returns the part of a session's system prompt that names its skills, "" if there are
// none. It takes at most one percent of the model's window, in tokens. offered are the tools
// that the model gets, none meaning all: without the tool skill there is no catalogue.
func (p *Plugin) Catalogue(session string, window int, offered []string) string {
	if len(offered) > 0 && !slices.Contains(offered, ToolName) {
		return ""
	}
	in, done := p.cfg.Look(session)
	defer done()
	return catalogue(forModels(p.cfg.Library.Look(in)), window/100*bytesPerToken)
}

// catalogue lists skills in at most room bytes.
func catalogue(all []agentskill.Found, room int) string {
	if len(all) == 0 {
		return ""
	}
	for _, n := range lengths {
		lines, size := make([]string, 0, len(all)), len(intro)
		for _, f := range all {
			lines = append(lines, line(f.Skill, n))
			size += len(lines[len(lines)-1])
		}
		if size <= room {
			return intro + strings.Join(lines, "")
		}
	}
	out, left := intro, room-len(intro)-len(fmt.Sprintf(more, len(all)))
	listed := 0
	for _, f := range all {
		l := line(f.Skill, lengths[len(lengths)-1])
		if left -= len(l); left < 0 {
			break
		}
		out += l
		listed++
	}
	if out += fmt.Sprintf(more, len(all)-listed); len(out) > room {
		return "" // not even a sentence fits
	}
	return out
}

func line(s agentskill.Skill, n int) string {
	return "- " + s.Name + ": " + cut.Line(invisible.Plain(s.Description), n) + "\n"
}
