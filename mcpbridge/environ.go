package mcpbridge

import (
	"context"
	"fmt"

	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// environ returns the environment of a server's process.
func (b *Bridge) environ(x servers.Server) []string {
	env := x.Environ(b.cfg.Env, b.inherits(x)...)
	if x.Sandbox != nil && x.Sandbox.MCP {
		env = append(env, "YAYA_MCP_URL=http://"+servers.SandboxMCP+"/mcp")
	}
	return env
}

// inherits returns the variables of yaya's environment that a server gets in addition to the
// usual ones. A bounded server gets those that its entry names.
func (b *Bridge) inherits(x servers.Server) []string {
	if x.SandboxProfile() != servers.SandboxServer {
		pass, _ := b.passed()
		return pass
	}
	if x.Sandbox == nil {
		return nil
	}
	return x.Sandbox.Env
}

// passed returns the configured variables of yaya's environment that every server's process
// gets, and warnings about those that cannot be passed.
func (b *Bridge) passed() (names, warnings []string) {
	if b.cfg.PassEnv == nil {
		return nil, nil
	}
	for _, name := range b.cfg.PassEnv() {
		if err := servers.CheckEnvName(name); err != nil {
			warnings = append(warnings, fmt.Sprintf("servers.pass_env: %v", err))
			continue
		}
		names = append(names, name)
	}
	return names, warnings
}

const maxEnvFile = 64 << 10

func (b *Bridge) readEnvFile(ctx context.Context, s *servers.Server) error {
	data, err := secretfile.Read(ctx, s.EnvFile, maxEnvFile)
	if err != nil {
		return fmt.Errorf("envFile: %w", err)
	}
	env, err := servers.ParseEnvFile(data)
	if err != nil {
		return fmt.Errorf("envFile %s: %w", s.EnvFile, err)
	}
	for k, v := range s.Env { // explicit values win
		env[k] = v
	}
	s.Env = env
	return nil
}
