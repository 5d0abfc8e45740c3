// Command eval has yaya's agent solve small tasks in repositories, and checks what it did: `make eval`.
//
// Each folder below testdata is a task: task.json says what is asked and how the result is checked,
// repo is what the agent finds, and check has files that the agent never sees, which are put there
// before the check runs. Each task has a yaya, a home and a copy of the repository of its own.
//
// Without a provider the scripted model follows the task's own script, so that a run without a key
// shows that tools, approvals and checks work. A task whose program is missing here is skipped.
package main
