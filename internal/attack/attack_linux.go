// Command attack tries to pass for the owner of a yaya, for tests; it is not shipped.
// It is a separate program because forks of a process under the race detector take
// ten times as long.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() { os.Exit(attack(os.Args[1:])) }

// attack is run as attack KIND N TARGET. TARGET is host:port, or the path of a socket.
// It prints how often each answer came.
func attack(args []string) int {
	if len(args) != 3 {
		fmt.Println("attack KIND N TARGET")
		return 2
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		fmt.Println(err)
		return 2
	}
	target := args[2]
	if args[0] == "proxy" {
		return proxyFor(target)
	}
	try := map[string]func(string) (string, error){
		"ask": ask, "close": closeAtOnce, "child": deadChild, "thread": ownThread,
	}[args[0]]
	if try == nil {
		fmt.Printf("attack: no kind %q\n", args[0])
		return 2
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := map[string]int{}
	const racing = 4
	for range racing {
		wg.Go(func() {
			for range n / racing {
				got, err := try(target)
				if err != nil {
					got = "error: " + err.Error()
				}
				mu.Lock()
				answers[got]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for got, n := range answers {
		fmt.Printf("%d × %s\n", n, got)
	}
	return 0
}

// request is a request that only the owner may make, and that leaves a trace.
const request = "POST /v1/sessions HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 25\r\nConnection: close\r\n\r\n{\"workspace_path\":\"/usr\"}"

func requestTo(target string) string {
	if strings.HasPrefix(target, "/") {
		target = "yaya"
	}
	return strings.Replace(request, "HOST", target, 1)
}

func dialTarget(target string) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(target, "/") {
		network = "unix"
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := new(net.Dialer).DialContext(context.Background(), network, target)
		if !errors.Is(err, unix.EAGAIN) || time.Now().After(deadline) { // too many wait to be accepted
			return c, err
		}
	}
}

// answer is the status and the last line of an answer.
func answer(r io.Reader) (string, error) {
	resp, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	_, why, found := strings.Cut(string(body), `"message":"`)
	if why, _, _ = strings.Cut(why, `"`); !found {
		why = strings.TrimSpace(string(body))
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, why), err
}

func ask(target string) (string, error) {
	c, err := dialTarget(target)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, requestTo(target)); err != nil {
		return "", err
	}
	return answer(c)
}

// closeAtOnce does not wait for the answer: its effect shows in the trace.
func closeAtOnce(target string) (string, error) {
	c, err := dialTarget(target)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(c, requestTo(target))
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return "sent", err
}

// sockaddr makes a socket and Linux's form of an address.
func sockaddr(target string) (fd int, addr []byte, err error) {
	if strings.HasPrefix(target, "/") {
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return fd, append([]byte{unix.AF_UNIX, 0}, target+"\x00"...), err
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	at, _ := net.ResolveTCPAddr("tcp", target)
	return fd, append([]byte{unix.AF_INET, 0, byte(at.Port >> 8), byte(at.Port), 127, 0, 0, 1}, make([]byte, 8)...), err
}

// overFD sends the request over a connected socket without the runtime.
func overFD(fd int, target string) (string, error) {
	if _, err := unix.Write(fd, []byte(requestTo(target))); err != nil {
		return "", err
	}
	return answer(readerFunc(func(p []byte) (int, error) {
		n, err := unix.Read(fd, p)
		if n == 0 && err == nil {
			err = io.EOF
		}
		return max(n, 0), err
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// deadChild lets a child connect and end before the request is sent.
func deadChild(target string) (string, error) {
	fd, addr, err := sockaddr(target)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.ForkLock.Lock()
	pid := forkAndConnect(uintptr(fd), addr)
	syscall.ForkLock.Unlock()
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil || ws.ExitStatus() != 0 {
		return "", errors.Join(fmt.Errorf("child %d: status %d", pid, ws.ExitStatus()), err)
	}
	return overFD(fd, target)
}

// ownThread connects in a thread that has descriptors of its own.
func ownThread(target string) (got string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends
		if err = unix.Unshare(unix.CLONE_FILES); err != nil {
			return
		}
		fd, addr, serr := sockaddr(target)
		if err = serr; err != nil {
			return
		}
		defer unix.Close(fd)
		if errno := connectFD(uintptr(fd), addr); errno != 0 {
			err = errno
			return
		}
		got, err = overFD(fd, target)
	}()
	<-done
	return got, err
}

// proxyFor passes requests on, and says where it listens.
func proxyFor(target string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: target})
		r.SetXForwarded()
	}}
	fmt.Println(l.Addr())
	fmt.Println(http.Serve(l, p))
	return 1
}
