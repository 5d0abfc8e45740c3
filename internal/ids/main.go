// Command ids checks docs/REQUIREMENTS.md against the repository. It fails if an
// implemented requirement is quoted by no test, if an id that a file quotes is not
// described there, or if one is described twice; each problem names its file and line.
//
// A file quotes an id by naming it in a comment or a text: Y-14, R36, C.2, or a short
// range, Y-14…Y-20.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

// span is a range of requirements of which every id is described and tested.
type span struct {
	prefix      string
	first, last int
}

var implemented = []span{{"Y", 1, 216}, {"F", 1, 27}, {"S", 1, 59}, {"W", 1, 77}}

// apart are ids that no test here can verify.
var apart = map[string]string{
	"Y-101": "installed plugins", "Y-102": "installed plugins", "Y-103": "installed plugins", "Y-104": "installed plugins",
	"F-25": "shown by make test as a whole",
	"S-58": "a later phase: remote tool runners, shared sessions",
	"S-59": "says what is not built",
}

// document is the file that describes the ids, below the root.
const document = "docs/REQUIREMENTS.md"

// problem is a mistake and its place.
type problem struct {
	file string
	line int
	text string
}

func (p problem) String() string { return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.text) }

func main() {
	root := flag.String("root", ".", "the repository")
	flag.Parse()
	problems, err := check(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ids:", err)
		os.Exit(2)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		fmt.Fprintf(os.Stderr, "ids: %d problems\n", len(problems))
		os.Exit(1)
	}
}

// check compares the document below root with what the files there quote.
func check(root string) ([]problem, error) {
	doc, problems, err := describedIn(root)
	if err != nil {
		return nil, err
	}
	quotes, err := quotesIn(root)
	if err != nil {
		return nil, err
	}
	tested := map[string]bool{}
	for _, q := range quotes {
		for _, id := range q.ids {
			if _, ok := doc[id]; !ok {
				problems = append(problems, problem{q.file, q.line, id + " is not described: say in " + document + " what it promises"})
			}
		}
		if q.test {
			for _, id := range q.shown {
				tested[id] = true
			}
		}
	}
	for _, s := range implemented {
		for n := s.first; n <= s.last; n++ {
			id := fmt.Sprintf("%s-%d", s.prefix, n)
			if _, ok := doc[id]; !ok {
				problems = append(problems, problem{document, 1, id + " is not described: say what it promises"})
			}
		}
	}
	for id, e := range doc {
		switch {
		case e.planned && apart[id] == "":
			problems = append(problems, problem{document, e.line, id + " is not implemented, and internal/ids does not know why"})
		case apart[id] == "" && requirement(id) && !tested[id]:
			problems = append(problems, problem{document, e.line, id + " is quoted by no test"})
		}
	}
	slices.SortFunc(problems, order)
	return slices.CompactFunc(problems, func(a, b problem) bool { return a == b }), nil
}
