// Package agentskill reads Agent Skills (agentskills.io/specification): folders with a file
// SKILL.md, which has a name and a description for the model in its front matter, and
// instructions below it.
//
// The content is hostile: everything is bounded in number, size and depth, no read follows a
// link out of the skill's folder or waits for a pipe, and front matter with anchors and
// aliases is refused. A skill that breaks a rule is reported as a [Broken] with the reason, and
// leaves the others as they are. The package starts no goroutine.
package agentskill
