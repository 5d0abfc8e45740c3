package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/service"
)

// Exit codes of yaya service status, which are those of systemctl and of init scripts.
const (
	exitStopped      = 3
	exitNotInstalled = 4
)

func serviceCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "service", Short: "Run yaya as a service of systemd or launchd", Args: cobra.NoArgs,
		Long: `Run yaya as a service: systemd or launchd starts it at sign-in, or with the machine, and
again when it fails.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(serviceInstallCommand(g), serviceUninstallCommand(g), serviceStatusCommand(g))
	return c
}

// serviceFlags are those of all commands about the service.
type serviceFlags struct{ system bool }

func (f *serviceFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.system, "system", false, "a service of the machine instead of yours; as root")
}

func serviceInstallCommand(g *daemon.Flags) *cobra.Command {
	var f serviceFlags
	var as string
	var sockets, print bool
	c := &cobra.Command{
		Use: "install [flags] [-- SERVE-FLAGS...]", Short: "Install and start the service",
		Long: `Install the service, have it start by itself from now on, and start it. It runs yaya serve
with the flags after --, and with --data-dir, --config-dir and --config if you name them.
It has your present PATH and otherwise none of your shell's variables: store keys of model
providers with yaya provider or yaya secret.

On Linux the service is a unit of systemd, on macOS an agent of launchd. With --system it
belongs to the machine and runs as the user of --as, with its data in
` + service.SystemState + `.

Run the command again after a change of flags. It changes only what differs, and it
replaces no file that somebody else wrote or edited.`,
		Example: `  yaya service install
  yaya service install -- --tls-self-signed --host yaya.local
  sudo yaya service install --system --socket -- --acme --host yaya.example.com`,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := serviceSpec(c, g, serviceWanted{system: f.system, as: as, sockets: sockets}, args)
			if err != nil {
				return err
			}
			if print {
				return printService(c.OutOrStdout(), s)
			}
			return installService(c.Context(), c.OutOrStdout(), g, s)
		},
	}
	f.register(c)
	c.Flags().StringVar(&as, "as", "yaya", "with --system, the `user` whom the service runs as")
	c.Flags().BoolVar(&sockets, "socket", false, "systemd listens for yaya: any port needs no right,\nand connections wait while yaya starts")
	c.Flags().BoolVar(&print, "print", false, "print the files instead of installing them")
	return c
}

func serviceUninstallCommand(g *daemon.Flags) *cobra.Command {
	var f serviceFlags
	c := &cobra.Command{
		Use: "uninstall", Short: "Stop and remove the service", Args: cobra.NoArgs,
		Long: `Stop the service and remove the files that yaya service install wrote. Data and
configuration stay.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := serviceHere(g, service.Spec{System: f.system})
			if err != nil {
				return err
			}
			done, err := s.Uninstall(c.Context())
			if err == nil && len(done.Files) == 0 {
				_, err = fmt.Fprintln(c.OutOrStdout(), "The service is not installed.")
				return err
			}
			return errors.Join(showDone(c.OutOrStdout(), done, "removed"), err)
		},
	}
	f.register(c)
	return c
}

func serviceStatusCommand(g *daemon.Flags) *cobra.Command {
	var f serviceFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "Show whether the service is installed and runs", Args: cobra.NoArgs,
		Long: `Show whether the service is installed and runs, and where its log is. The exit code is 0
if it runs, 3 if it does not, and 4 if it is not installed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := serviceHere(g, service.Spec{System: f.system})
			if err != nil {
				return err
			}
			st, err := s.Status(c.Context())
			if err != nil {
				return err
			}
			if st.Running {
				askService(c.Context(), g, &st)
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), st)
			} else {
				err = showService(c.OutOrStdout(), st)
			}
			switch {
			case err != nil:
				return err
			case !st.Installed:
				return &exitStatus{exitNotInstalled}
			case !st.Running:
				return &exitStatus{exitStopped}
			}
			return nil
		},
	}
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// serviceWanted holds the flags of an installation.
type serviceWanted struct {
	system  bool
	as      string
	sockets bool
}

// serviceSpec makes the specification of a service; args are flags of yaya serve.
func serviceSpec(c *cobra.Command, g *daemon.Flags, w serviceWanted, args []string) (s service.Spec, err error) {
	wrong := func(err error) error { return &usageError{c.CommandPath(), err} }
	if len(args) > 0 && c.ArgsLenAtDash() != 0 {
		return s, wrong(fmt.Errorf("unexpected argument %q: flags of yaya serve come after --", args[0]))
	}
	if w.sockets && runtime.GOOS != "linux" {
		return s, wrong(errors.New("--socket is for systemd"))
	}
	o := new(serveOptions)
	serve := &cobra.Command{Use: "serve"}
	o.register(serve)
	if err := serve.ParseFlags(args); err != nil {
		return s, wrong(fmt.Errorf("yaya serve: %w", flagMistake(err)))
	}
	if rest := serve.Flags().Args(); len(rest) > 0 {
		return s, wrong(fmt.Errorf("yaya serve takes no argument %q", rest[0]))
	}
	if err := o.check(); err != nil {
		return s, wrong(err)
	}
	folders, err := serviceFolders(g, w.system)
	if err != nil {
		return s, err
	}
	given, err := serveArgs(serve.Flags())
	if err != nil {
		return s, err
	}
	s = service.Spec{System: w.system, User: w.as, Args: slices.Concat([]string{"serve", "--no-open"}, folders, given)}
	if s.Program, err = daemon.Program(); err != nil {
		return s, err
	}
	h, err := serviceHost(g)
	if err != nil {
		return s, err
	}
	s.NotifyReload = h.KnowsNotifyReload(c.Context())
	s.Log = filepath.Join(h.Home, "Library/Logs/yaya.log")
	if path := os.Getenv("PATH"); path != "" && !w.system {
		s.Env = append(s.Env, "PATH="+path)
	}
	if w.system {
		s.Log = "/Library/Logs/yaya.log"
	}
	if file := daemon.Passphrase(); file != "" {
		s.Env = append(s.Env, "YAYA_PASSPHRASE_FILE="+file)
	}
	if w.sockets {
		if s.Sockets, err = serviceSockets(&o.listen); err != nil {
			return s, wrong(err)
		}
	}
	return s, nil
}

// serviceFolders are the flags that name the folders of a service.
func serviceFolders(g *daemon.Flags, system bool) (out []string, err error) {
	if !system {
		_, args, err := g.StdioCommand()
		return args[min(2, len(args)):], err // without "mcp serve"
	}
	for _, x := range []struct{ flag, given, usual string }{
		{"--data-dir", g.DataDir, service.SystemState + "/data"}, {"--config-dir", g.ConfigDir, service.SystemState + "/config"}, {"--config", g.ConfigFile, ""},
	} {
		dir := cmp.Or(x.given, x.usual)
		if dir == "" {
			continue
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		out = append(out, x.flag, dir)
	}
	return out, nil
}

// serveArgs are the flags of yaya serve that were given, as the service gets them: it runs in
// another folder.
func serveArgs(flags *pflag.FlagSet) (out []string, err error) {
	file := func(name, value string) string {
		if !slices.Contains([]string{"mcp-config", "tls-cert", "tls-key"}, name) || value == "" {
			return value
		}
		abs, aerr := filepath.Abs(value)
		err = errors.Join(err, aerr)
		return abs
	}
	flags.Visit(func(f *pflag.Flag) {
		switch v := f.Value.(type) {
		case pflag.SliceValue:
			for _, x := range v.GetSlice() {
				out = append(out, "--"+f.Name+"="+file(f.Name, x))
			}
		default:
			if f.Name != "no-open" {
				out = append(out, "--"+f.Name+"="+file(f.Name, f.Value.String()))
			}
		}
	})
	return out, err
}

// serviceSockets are the addresses that systemd listens on for yaya.
func serviceSockets(l *daemon.Listen) (out []service.Socket, err error) {
	plain := l.Plain
	if plain == "off" {
		plain = ""
	}
	for _, x := range []struct{ name, addr string }{{"listen", l.Addr}, {"local", l.Local}, {"acme-http", plain}} {
		if x.addr == "" {
			continue
		}
		at, err := service.ListenStream(x.addr)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", x.name, err)
		}
		out = append(out, service.Socket{Name: x.name, Listen: at})
	}
	return out, nil
}

// serviceHere is the service on this machine.
func serviceHere(g *daemon.Flags, s service.Spec) (*service.Service, error) {
	h, err := serviceHost(g)
	if err != nil {
		return nil, err
	}
	if os.Getenv("SUDO_USER") != "" && h.UID == 0 && !s.System {
		return nil, errors.New("under sudo this would be root's own service: leave sudo out for yours, or say --system for the machine's")
	}
	if s.Log == "" {
		s.Log = filepath.Join(h.Home, "Library/Logs/yaya.log")
	}
	out, err := service.New(h, s)
	if errors.Is(err, service.ErrNoManager) {
		err = fmt.Errorf("%w. Have whatever starts programs here run this and keep it running: %s (yaya service install --print prints a unit)", err, strings.Join(append([]string{cmp.Or(s.Program, "yaya")}, cmp.Or(strings.Join(s.Args, " "), "serve --no-open")), " "))
	}
	return out, err
}

func serviceHost(g *daemon.Flags) (service.Host, error) {
	if runtime.GOOS == "windows" {
		return service.Host{}, errors.New("yaya installs no service on Windows: have the Task Scheduler run \"yaya serve --no-open\" when you sign in")
	}
	p, err := g.Paths()
	if err != nil {
		return service.Host{}, err
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(p.Home, ".config")
	}
	return service.ThisHost(runtime.GOOS, p.Home, config), nil
}

func printService(w io.Writer, s service.Spec) error {
	files := s.Files(runtime.GOOS)
	for i, f := range files {
		if len(files) > 1 {
			gap := "\n"
			if i == 0 {
				gap = ""
			}
			if _, err := fmt.Fprintf(w, "%s# %s\n", gap, f.Name); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, f.Text); err != nil {
			return err
		}
	}
	return nil
}

func installService(ctx context.Context, w io.Writer, g *daemon.Flags, spec service.Spec) error {
	s, err := serviceHere(g, spec)
	if err != nil {
		return err
	}
	if spec.System {
		if err := service.NeedUser(spec.User); err != nil {
			return err
		}
	}
	st, err := s.Status(ctx)
	if err != nil {
		return err
	}
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if b, ok := daemon.Reach(ctx, p); ok && !spec.System {
		b.Client.CloseIdleConnections()
		if !st.Running {
			return fmt.Errorf("a yaya runs on %s already, which is not the service: end it, and run the command again", p.Data)
		}
	}
	done, err := s.Install(ctx)
	if err == nil && len(done.Files)+len(done.Acts) == 0 {
		_, err = fmt.Fprintln(w, "The service is installed and runs; nothing has changed.")
		return err
	}
	if err := errors.Join(showDone(w, done, "written"), err); err != nil {
		return err
	}
	if st, err = s.Status(ctx); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "Log: %s\nHow it is: yaya service status%s\n", st.Log, map[bool]string{true: " --system"}[spec.System]); err != nil {
		return err
	}
	if spec.System {
		_, err = fmt.Fprintf(w, "Its commands: %s mcp list\n", strings.Join(ofService(spec), " "))
	}
	return err
}

// ofService is how the commands of a service of the system begin: with its user and its folders.
func ofService(s service.Spec) []string {
	from := min(2, len(s.Args)) // behind serve --no-open
	to := from
	for to+1 < len(s.Args) && slices.Contains([]string{"--data-dir", "--config-dir", "--config"}, s.Args[to]) {
		to += 2
	}
	return append([]string{"sudo", "-u", s.User, s.Program}, s.Args[from:to]...)
}

func showDone(w io.Writer, d service.Done, verb string) error {
	var b strings.Builder
	for _, f := range d.Files {
		fmt.Fprintf(&b, "%s: %s\n", daemon.Printable(f, 600), verb)
	}
	if len(d.Acts) > 0 {
		fmt.Fprintf(&b, "The service was %s.\n", strings.Join(d.Acts, " and "))
	}
	for _, n := range d.Notes {
		fmt.Fprintln(&b, n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// askService completes a status with what yaya itself says, if it is on this data directory.
func askService(ctx context.Context, g *daemon.Flags, st *service.Status) {
	p, err := g.Paths()
	if err != nil {
		return
	}
	b, ok := daemon.Reach(ctx, p)
	if !ok {
		return
	}
	defer b.Client.CloseIdleConnections()
	var r struct {
		Version string `json:"version"`
	}
	if b.GetJSON(ctx, "/status", &r) == nil && st.Version == "" {
		st.Version = r.Version
	}
	all, err := listed(ctx, b, "log.file")
	if err != nil {
		return // another user's
	}
	for _, x := range all {
		var file string
		if x.Key == "log.file" && json.Unmarshal(x.Value, &file) == nil && file != "" {
			st.Log = file
		}
	}
}

func showService(w io.Writer, st service.Status) error {
	if !st.Installed {
		_, err := fmt.Fprintf(w, "The service is not installed: yaya service install (there is no %s)\n", st.File)
		return err
	}
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-9s %s\n", name, value) }
	file := daemon.Printable(st.File, 600)
	if st.Changed {
		file += " (somebody has edited it)"
	}
	line("file", file)
	line("enabled", map[bool]string{true: "yes", false: "no"}[st.Enabled])
	line("state", daemon.Printable(st.State, 200))
	if st.PID > 0 {
		line("pid", fmt.Sprint(st.PID))
	}
	if st.Version != "" {
		line("version", daemon.Printable(st.Version, 60))
	}
	if st.Says != "" {
		line("says", daemon.Printable(st.Says, 300))
	}
	line("log", daemon.Printable(st.Log, 600))
	_, err := io.WriteString(w, b.String())
	return err
}
