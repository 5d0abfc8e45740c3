package conform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/plugins/remote"
	yaya "github.com/yaya-ai/yaya/sdk/go"
)

const programName = "plugin-under-test"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		os.Exit(program(os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}

// program is a plugin that behaves, or has one fault.
func program(fault string) int {
	switch fault {
	case "prints":
		fmt.Println("loading ...")
	case "exits":
		return 3
	case "fails":
		fmt.Fprintln(os.Stderr, "no license\nand more")
		return 4
	case "deaf": // its standard input has nobody at the other end
		_ = os.Stdin.Close()
		return 5
	case "stays":
		defer func() { select {} }()
	}
	version := "1.0.0"
	if fault == "version" {
		version = "2.0.0"
	}
	p := yaya.Plugin{Name: "subject", Version: version, Category: "tool", Tools: []yaya.Tool{
		yaya.NewTool("hello", "Says hello.", func(context.Context, *yaya.Call, struct{}) (yaya.Result, error) { return yaya.Text("hello"), nil }),
	}}
	if strings.HasPrefix(fault, "guard") {
		p.GuardTool = func(_ context.Context, _ *yaya.Host, c yaya.GuardedCall) (yaya.Verdict, error) {
			switch fault {
			case "guard-nothing":
				return yaya.Verdict{}, nil
			case "guard-late": // an answer at the deadline could be in time
				select {}
			}
			return yaya.Deny("no " + c.Name), nil
		}
	}
	if fault == "health" {
		p.Health = func(context.Context) yaya.Health { return yaya.Health{Status: "fine"} }
	}
	if yaya.Serve(p, os.Stdin, os.Stdout) != nil {
		return 1
	}
	return 0
}

// The SDK conforms, and each fault fails its check.
func TestRun(t *testing.T) {
	for fault, want := range map[string]string{
		"none": "", "prints": "not a message", "version": "2.0.0", "health": `got the status "fine"`, "stays": "runs on",
		"exits": "initialize: the program exited with status 3, and said nothing on standard error", "deaf": "the program exited with status 5",
		"fails": "initialize: the program exited with status 4, and said on standard error:\nno license\nand more",
		"guard": "", "guard-nothing": `its decision "" is none of`, "guard-late": "point pre_tool: no answer within 5s", "guard-not-said": "it guards [\"pre_tool\"], and permissions.guards of its plugin.toml says []",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			self, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				t.Skipf("this test starts itself: %v", err)
			}
			syscall.ForkLock.RLock()                                         // no process starts meanwhile: the file would be busy
			err = os.WriteFile(filepath.Join(dir, programName), self, 0o700) //nolint:gosec // a program
			syscall.ForkLock.RUnlock()
			if err != nil {
				t.Fatal(err)
			}
			guards := ""
			if strings.HasPrefix(fault, "guard") && fault != "guard-not-said" {
				guards = `"pre_tool"`
			}
			d, err := remote.ParseDescription(fmt.Appendf(nil, "name = \"subject\"\nversion = \"1.0.0\"\ncategory = \"tool\"\nrun = [\"./%s\", %q]\npermissions.guards = [%s]\n", programName, fault, guards))
			if err != nil {
				t.Fatal(err)
			}
			procs := new(proc.Manager)
			defer procs.Close(context.Background())
			p := remote.New(remote.Config{Folder: dir, Description: d, Procs: procs})
			var said []string
			ran := 0
			Run(t.Context(), d, func() (*remote.Process, error) { return p.Spawn(dir) }, func(r Result) {
				ran++
				if r.Err != nil {
					said = append(said, r.Check+": "+r.Err.Error())
				}
			})
			text := strings.Join(said, "\n")
			if (want == "") != (text == "") || !strings.Contains(text, want) || ran == 0 {
				t.Errorf("%d checks, failures:\n%s\nwant %q", ran, text, want)
			}
		})
	}
}
