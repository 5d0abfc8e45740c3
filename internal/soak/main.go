//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/echoserver"
)

func main() {
	fixture := flag.Bool("fixture", false, "be the upstream server, on standard input and output")
	bin := flag.String("yaya", "bin/yaya", "the binary to run")
	lasts := flag.Duration("time", 20*time.Minute, "length of the run")
	every := flag.Duration("sample", 10*time.Second, "interval of the samples")
	flag.Parse()
	if *fixture {
		if err := echoserver.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, *bin, *lasts, *every); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak runs yaya under load for a while, and returns an error if something was wrong.
func soak(ctx context.Context, bin string, lasts, every time.Duration) error {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return err
	}
	d, err := start(ctx, bin, dir)
	if err != nil {
		return fmt.Errorf("%w; its data and log stay in %s", err, dir)
	}
	defer d.stop()
	fmt.Printf("pid %d, %s, data and log in %s\n\n", d.pid(), lasts, dir)
	fmt.Println("| after | RSS MB | descriptors | goroutines | disk MB | " + workHeader() + " |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")

	loaded, cancel := context.WithCancel(ctx)
	l := newLoad(d)
	l.begin(loaded, lasts)
	var all []sample
	begun := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for shown := begun; time.Since(begun) < lasts && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			s, err := d.sample(ctx, time.Since(begun))
			if err != nil {
				l.fail("sample", err)
				continue
			}
			all = append(all, s)
			if time.Since(shown) >= time.Minute || len(all) == 1 {
				shown = time.Now()
				fmt.Println(s.row(l))
			}
		}
	}
	cancel()
	l.wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return verdict(all, l, dir)
}

// command runs yaya with arguments, beside the daemon.
func (d *daemon) command(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.bin, append(args, "--data-dir", d.data(), "--config-dir", filepath.Join(d.dir, "c"))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("yaya %s: %w: %s", args[0], err, out)
	}
	return nil
}
