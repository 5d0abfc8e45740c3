package chat

import (
	"encoding/json"
	"net"
	"strconv"

	"github.com/yaya-ai/yaya/internal/screen"
)

// hostTool is the tool name of the question whether a command or web_fetch may reach a host.
const hostTool = "sandbox_host"

// heading returns the question, usually whether a tool may run.
func heading(a Ask) string {
	var q struct {
		Host    string `json:"host"`
		Port    int    `json:"port"`
		URL     string `json:"url"`
		Outside bool   `json:"outside"`
	}
	_ = json.Unmarshal(a.Input, &q) // unreadable params are shown unchanged
	switch {
	case a.Tool == hostTool && q.Host != "":
		who := "the command reach "
		if q.URL != "" {
			who = "the agent read from "
		}
		return "may " + who + screen.Paint(screen.Bold, screen.Clean(net.JoinHostPort(q.Host, strconv.Itoa(q.Port)), 300)) + "?"
	case a.Tool == "shell" && q.Outside:
		return "may " + screen.Paint(screen.Bold, "shell") + " run " + screen.Paint(screen.Bold, "outside the sandbox") + "?"
	}
	return "may " + screen.Paint(screen.Bold, screen.Clean(a.Tool, 80)) + " run?"
}
