package gateway

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// socketByTable asks Linux's socket tables (proc_pid_net(5)). They list the
// remote end as somebody's local one.
func socketByTable(its, ours *net.TCPAddr) (socketInfo, error) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if s, err := scanSockets(table, its, ours); !errors.Is(err, errNoSocket) {
			return s, err
		}
	}
	return socketInfo{}, errNoSocket
}

func scanSockets(table string, its, ours *net.TCPAddr) (socketInfo, error) {
	f, err := os.Open(table) //nolint:forbidigo,gosec // a file of /proc
	if noted(err) != nil {
		return socketInfo{}, errNoSocket // the table is absent without IPv6
	}
	defer func() { _ = f.Close() }()
	wantLocal, wantRemote := hexAddr(its, table), hexAddr(ours, table)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == wantLocal && fields[2] == wantRemote {
			state, err1 := strconv.ParseUint(fields[3], 16, 8)
			uid, err2 := strconv.ParseUint(fields[7], 10, 32)
			ino, err3 := strconv.ParseUint(fields[9], 10, 32)
			return socketInfo{state: uint8(state), uid: uint32(uid), inode: uint32(ino)}, errors.Join(err1, err2, err3)
		}
	}
	return socketInfo{}, errNoSocket
}

// hexAddr writes an address as Linux's tables do: 32-bit words in host
// order, which is little-endian on every platform that yaya is built for.
func hexAddr(a *net.TCPAddr, table string) string {
	ip := a.IP.To4()
	if strings.HasSuffix(table, "6") {
		ip = a.IP.To16()
	}
	var b strings.Builder
	for i := 0; i+4 <= len(ip); i += 4 {
		b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{ip[i+3], ip[i+2], ip[i+1], ip[i]})))
	}
	return fmt.Sprintf("%s:%04X", b.String(), a.Port)
}
