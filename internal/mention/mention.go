// Package mention has the types of what a user can add to a message from the MCP servers of a
// session: their resources, which the message mentions, and their prompts, which are messages. The
// bridge fills them in, the session API sends them, and yaya chat shows them. All texts are the
// servers'.
package mention

import "errors"

// ErrNoServer says that a session has no connected server of the name that follows.
var ErrNoServer = errors.New("no connected server")

// Server is a connected server that a session may use.
type Server struct {
	Name      string `json:"name"`
	Resources bool   `json:"resources" doc:"whether it has resources that the session may read"`
	Prompts   bool   `json:"prompts" doc:"whether it has prompts that the session may get"`
}

// Resource is a resource that a server lists.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mime_type,omitempty"`
}

// Prompt is a prompt that a server lists.
type Prompt struct {
	Name        string     `json:"name" doc:"as the server has it"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
	Arguments   []Argument `json:"arguments"`
}

// Argument is an argument of a prompt.
type Argument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}
