package service

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Spec describes the program that a service runs, and how.
type Spec struct {
	Program string   // absolute path of yaya
	Args    []string // of the program
	Env     []string // NAME=value; the rest is the service manager's
	System  bool     // of the machine, instead of one user's
	User    string   // whose rights a system's service has
	Log     string   // launchd: where the output goes
	// NotifyReload says that the service manager knows Type=notify-reload (systemd 253).
	NotifyReload bool
	Sockets      []Socket // that the service manager opens, before yaya starts
}

// Socket is an address that the service manager listens on for yaya.
type Socket struct {
	Name   string // listen, local or acme-http
	Listen string // as ListenStream= has it
}

// File is a file of the service manager's.
type File struct {
	Name string `json:"name"` // without its folder
	Text string `json:"text"`
}

// Unit is the name of the service in systemd.
const Unit = "yaya.service"

// SystemState is the folder of a system's service.
const SystemState = "/var/lib/yaya"

// socketUnit names the unit of a socket. Each has its own: the name that yaya knows a socket by
// is a property of the unit.
func socketUnit(name string) string {
	if name == "listen" {
		return "yaya.socket"
	}
	return "yaya-" + name + ".socket"
}

// ListenStream returns an address of yaya's as systemd writes it.
func ListenStream(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 { //nolint:noctx // it asks nobody
		return "", fmt.Errorf("%s: systemd needs the number of a port", addr)
	} else if host == "" {
		return fmt.Sprint(n), nil
	} else {
		port = fmt.Sprint(n)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return "", fmt.Errorf("%s: systemd listens at addresses, not at names: write the address of this machine, such as 127.0.0.1", addr)
	}
	return net.JoinHostPort(host, port), nil
}

// check refuses what no file of a service manager can hold.
func (s Spec) check() error {
	for _, text := range slices.Concat([]string{s.Program, s.User, s.Log}, s.Args, s.Env) {
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }); i >= 0 {
			return fmt.Errorf("%q has a character that a service's file cannot hold: choose another name", text)
		}
	}
	return nil
}
