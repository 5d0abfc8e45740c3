package servers

import "github.com/yaya-ai/yaya/internal/sandbox"

// Promised are the needs that a person's approval of a server's sandbox relies on. They exclude
// bounds on memory and processes, and limits on hosts if the machine cannot enforce them.
const Promised = sandbox.NeedHidden | sandbox.NeedStrict | sandbox.NeedWrites | sandbox.NeedProcesses | sandbox.NeedNetwork | sandbox.NeedSockets | sandbox.NeedKernel

// Here tells which parts of a program's sandbox are enforced on this machine, with the current
// settings.
type Here struct {
	// Lacks is the part of [Promised] that is not enforced.
	Lacks sandbox.Need
	// Weaker describes Lacks in words, "" if nothing is missing.
	Weaker string
	// Refused is the reason why the program does not start at all, "" if it does.
	Refused string

	off bool // nothing is enforced
}

// NewHere tells which parts of a policy would be enforced for a program.
func NewHere(boxes *sandbox.Sandboxes, p sandbox.Policy) Here {
	e, err := boxes.Here(p)
	if err != nil {
		return Here{Refused: err.Error()}
	}
	h := Here{Lacks: p.Wants() &^ e.Has & Promised, off: e.Backend == sandbox.None}
	switch {
	case h.off && boxes.Settings().Mode == sandbox.Without:
		h.Weaker = "the sandbox is off: it has all rights of your user"
	case h.off:
		h.Weaker = "there is no sandbox here: it has all rights of your user"
	case h.Lacks != 0:
		h.Weaker = "not enforced here: " + h.Lacks.String()
	}
	return h
}

// Says returns the description of a sandbox, with the parts that are not enforced.
func (h Here) Says(bounds string) string {
	switch {
	case bounds == "":
		return ""
	case h.Refused != "":
		return bounds + " (does not start here: " + h.Refused + ")"
	case h.off:
		return h.Weaker + "; with a sandbox, " + bounds
	case h.Weaker != "":
		return bounds + "; " + h.Weaker
	}
	return bounds
}
