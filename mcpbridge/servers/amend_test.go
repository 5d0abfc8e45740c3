package servers_test

import (
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// GF-9: an entry that changes keeps what does not change in it, as its user wrote it: order,
// layout, comments, and members that yaya does not know or would have added.
func TestSetAmendsAnEntry(t *testing.T) {
	for _, c := range []struct {
		name, data, want string
		change           func(*servers.Server)
	}{
		{
			"a permit", `{
    // mine
    "mcpServers": {
        "fs": {"command": "npx", "args": ["-y", "fs"], // keep
               "sandbox": {"profile": "server"}},
        "g": { "command": "true" }
    }
}
`, `{
    // mine
    "mcpServers": {
        "fs": {"command": "npx", "args": ["-y", "fs"], // keep
               "sandbox": {"profile": "server", "write": ["/n"]}},
        "g": { "command": "true" }
    }
}
`, func(s *servers.Server) { s.Sandbox.Write = []string{"/n"} },
		},
		{
			"an entry of lines", `{
  "mcpServers": {
    "fs": {
      "args": ["a"],
      "command": "npx",
      "env": {
        // first
        "A": "1",
        "B": "2"
      }
    }
  }
}
`, `{
  "mcpServers": {
    "fs": {
      "args": ["a"],
      "command": "uvx",
      "env": {
        // first
        "A": "1",
        "C": "3"
      },
      "cwd": "/w"
    }
  }
}
`, func(s *servers.Server) { s.Command, s.Dir, s.Env = "uvx", "/w", map[string]string{"A": "1", "C": "3"} },
		},
		{
			"another name of a member", `{"mcpServers": {"fs": {"command": "npx", "working_directory": "/a"}}}`,
			`{"mcpServers": {"fs": {"type":"stdio","command":"npx","cwd":"/b"}}}`, func(s *servers.Server) { s.Dir = "/b" },
		},
		{
			"nothing", `{"mcpServers": { "fs": {"command":   "npx"} } }`, `{"mcpServers": { "fs": {"command":   "npx"} } }`, func(*servers.Server) {},
		},
		{
			"the last member goes", `{"mcpServers": {"fs": {"command": "npx", "disabled": true}}}`, `{"mcpServers": {"fs": {"command": "npx"}}}`, func(s *servers.Server) { s.Disabled = false },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := servers.Parse("f.json", []byte(c.data), servers.FormatYaya)
			if err != nil || len(cfg.Servers) == 0 {
				t.Fatalf("got %v, %v, want len(Servers) not 0", cfg, err)
			}
			s := cfg.Servers[0]
			for _, one := range cfg.Servers {
				if one.Name == "fs" {
					s = one
				}
			}
			c.change(&s)
			out, err := servers.Set("f.json", []byte(c.data), s)
			if err != nil || string(out) != c.want {
				t.Errorf("Set = %v\n%s\nwant\n%s", err, out, c.want)
			}
		})
	}
}
