package service

import (
	"fmt"
	"strings"
)

// units are the files of systemd, the service first.
func (s Spec) units() []File {
	files := []File{{Unit, signed("#", s.serviceUnit())}}
	for _, x := range s.Sockets {
		files = append(files, File{socketUnit(x.Name), signed("#", socketText(x))})
	}
	return files
}

func socketText(x Socket) string {
	return fmt.Sprintf(`[Unit]
Description=Address of yaya (%[1]s)

[Socket]
ListenStream=%[2]s
FileDescriptorName=%[1]s
Service=%[3]s

[Install]
WantedBy=sockets.target
`, x.Name, x.Listen, Unit)
}

// serviceUnit is the text of the service. It names the usual lines that it must not have, with
// the reasons: readers of the unit would add them.
func (s Spec) serviceUnit() string {
	var b strings.Builder
	edit := "systemctl --user edit " + Unit
	if s.System {
		edit = "systemctl edit " + Unit
	}
	fmt.Fprintf(&b, "# Put changes into a drop-in, which a new installation keeps: %s\n\n", edit)
	b.WriteString("[Unit]\nDescription=yaya, a gateway to MCP servers\nDocumentation=https://github.com/yaya-ai/yaya\n")
	var sockets []string
	for _, x := range s.Sockets {
		sockets = append(sockets, socketUnit(x.Name))
	}
	if len(sockets) > 0 {
		names := strings.Join(sockets, " ")
		fmt.Fprintf(&b, "Wants=%s\nAfter=%[1]s\n", names)
	}
	if s.System {
		b.WriteString("Wants=network-online.target\nAfter=network-online.target\n")
	}
	b.WriteString("StartLimitIntervalSec=300\nStartLimitBurst=5\n\n[Service]\n")
	if s.NotifyReload {
		b.WriteString("Type=notify-reload\n")
	} else {
		b.WriteString("# Type=notify-reload, without ExecReload, is better from systemd 253 on.\nType=notify\nExecReload=/bin/kill -HUP $MAINPID\n")
	}
	b.WriteString("ExecStart=" + execStart(append([]string{s.Program}, s.Args...)) + "\n")
	if len(sockets) > 0 {
		b.WriteString("Sockets=" + strings.Join(sockets, " ") + "\n")
	}
	for _, e := range s.Env {
		b.WriteString("Environment=" + quote(e) + "\n")
	}
	b.WriteString(`Restart=on-failure
RestartSec=2
WatchdogSec=60
TimeoutStartSec=300
TimeoutStopSec=60
# Only yaya is told to stop. It ends its servers, after the calls that run.
KillMode=mixed
# A server that needs too much memory must not end the service.
OOMPolicy=continue
# yaya gives each sandbox a control group.
Delegate=yes
`)
	if s.System {
		b.WriteString("User=" + strings.ReplaceAll(s.User, "%", "%%") + systemLines)
		if s.User != "root" { // without its capabilities, root cannot make user namespaces
			b.WriteString(boundLines)
		}
	} else {
		b.WriteString(userLines)
	}
	b.WriteString(absentLines)
	target := "default.target"
	if s.System {
		target = "multi-user.target"
	}
	fmt.Fprintf(&b, "\n[Install]\nWantedBy=%s\n", target)
	if len(sockets) > 0 {
		fmt.Fprintf(&b, "Also=%s\n", strings.Join(sockets, " "))
	}
	return b.String()
}

const systemLines = `
StateDirectory=yaya yaya/data yaya/config
StateDirectoryMode=0700
Environment=HOME=` + SystemState + `
WorkingDirectory=~
UMask=0077
NoNewPrivileges=yes
RestrictRealtime=yes
SystemCallArchitectures=native
`

const boundLines = `# For a program that has this file capability. With a socket unit none is needed.
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
`

const userLines = `# NoNewPrivileges and what implies it (RestrictRealtime, SystemCallArchitectures) are
# absent: servers of yours may use sudo or podman. So is UMask: what agents write in
# your folders has the modes of your other files.
`

const absentLines = `# Absent, as they break yaya:
# - ProtectSystem, ProtectHome, PrivateTmp, PrivateDevices, ProtectProc, ReadWritePaths,
#   ProtectKernelTunables, ProtectKernelLogs, ProtectControlGroups: each gives yaya a
#   mount namespace. yaya takes only processes of its own namespaces for its user, so
#   "yaya mcp list" and all other commands would be refused. With a masked /proc,
#   sandboxes cannot mount theirs, and with read-only groups they have none.
# - PrivateUsers, RestrictNamespaces, SystemCallFilter, ProtectHostname: sandboxes are
#   made of namespaces and mounts. yaya confines servers and commands with these.
# - MemoryDenyWriteExecute, LockPersonality, RestrictSUIDSGID: Node.js compiles code
#   while it runs, sanitizers change their personality, packages bring such files.
`

// execStart is a command line of systemd's (systemd.service(5), "Command lines").
func execStart(argv []string) string {
	prefix := ""
	for i := range argv {
		if strings.Contains(argv[i], "$") {
			prefix = ":" // no variables: a doubled $ would stay doubled in the program's path
		}
	}
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = quote(a)
	}
	return prefix + strings.Join(out, " ")
}

// quote is a word of a setting of systemd's, without what its specifiers and quotes would make
// of it.
func quote(s string) string {
	s = strings.ReplaceAll(s, "%", "%%")
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\"'\\;", r) }) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
