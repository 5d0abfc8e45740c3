package chat

import (
	"encoding/json"
	"net"
	"strconv"
)

// hostTool is the tool name of the question whether a command may reach a host.
const hostTool = "sandbox_host"

// heading returns the question, usually whether a tool may run.
func heading(a Ask) string {
	var q struct {
		Host    string `json:"host"`
		Port    int    `json:"port"`
		Outside bool   `json:"outside"`
	}
	_ = json.Unmarshal(a.Input, &q) // unreadable params are shown unchanged
	switch {
	case a.Tool == hostTool && q.Host != "":
		return "may the command reach " + paint(bold, clean(net.JoinHostPort(q.Host, strconv.Itoa(q.Port)), 300)) + "?"
	case a.Tool == "shell" && q.Outside:
		return "may " + paint(bold, "shell") + " run " + paint(bold, "outside the sandbox") + "?"
	}
	return "may " + paint(bold, clean(a.Tool, 80)) + " run?"
}
